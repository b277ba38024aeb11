// Flow storage's tensors, the same on both paths; a path says how a step is done.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "kernels/energy_flow/flow_storage/arguments.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_storage {

// A run is a number of forwards in one storage: each lets go of all that the one before has left, by its tag alone.
class Stored : public Runnable {
 public:
  Stored(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        forwards_(setting.size("forwards")),
        steps_(setting.size("steps")),
        first_(static_cast<std::int64_t>(setting.option("first"))),
        device_(setting.device.tensors()) {
    const Extents extents{setting.size("samples"), setting.size("layers"), setting.size("hidden"),
                          setting.size("slots")};
    const bool bf16 = setting.on("hidden_dtype");
    const auto field = [&](const char* name, at::IntArrayRef shape, at::ScalarType dtype) {
      fields_.set(name, at::zeros(shape, at::TensorOptions(device_).dtype(dtype)));
      return fields_[name];
    };
    const std::int64_t capacity = extents.capacity();
    const auto column = [&](const char* name) { return data<std::int32_t>(field(name, {capacity}, at::kInt)); };
    const at::Tensor hidden =
        field("hidden", {extents.layers, capacity, extents.hidden}, bf16 ? at::kBFloat16 : at::kFloat);
    step_ = {.extents = extents,
             .storage = {.position = data<float>(field("position", {3, capacity}, at::kFloat)),
                         .energy = data<float>(field("energy", {capacity}, at::kFloat)),
                         .hidden = operands<float>(hidden),
                         .sample = column("sample"),
                         .local_id = column("local_id"),
                         .age = column("age"),
                         .status = data<std::uint8_t>(field("status", {capacity}, at::kByte)),
                         .distance = data<float>(field("distance", {capacity}, at::kFloat)),
                         .cell = column("cell"),
                         .forward_id = column("forward_id")}};
    for (const auto& [name, tensor] : inputs) inputs_.set(name, tensor.contiguous());
    Stored::reset();
  }

  void reset() override {
    generation_ = inputs_["generation"].item<std::int32_t>();
    fields_["forward_id"].fill_(generation_ - 1);  // nobody's
  }

  void run() override {
    const std::int64_t capacity = step_.extents.capacity();
    for (std::int64_t forward = first_; forward < forwards_; ++forward) {
      step_.forward = static_cast<std::int32_t>(generation_ + forward + 1);
      step_.birth = inputs_["birth"].const_data_ptr<std::int32_t>() + forward * capacity;
      for (std::int64_t step = 0; step < steps_; ++step) {
        const std::int64_t row = (forward * steps_ + step) * capacity;
        step_.step = static_cast<std::int32_t>(step);
        step_.position = inputs_["position"].const_data_ptr<float>() + 3 * row;
        step_.energy = inputs_["energy"].const_data_ptr<float>() + row;
        step_.hidden = inputs_["hidden"].const_data_ptr<float>() + row * step_.extents.layers * step_.extents.hidden;
        step_.status = inputs_["status"].const_data_ptr<std::uint8_t>() + row;
        step_.distance = inputs_["distance"].const_data_ptr<float>() + row;
        step_.cell = inputs_["cell"].const_data_ptr<std::int32_t>() + row;
        store(step_);
      }
    }
    generation_ += static_cast<std::int32_t>(forwards_);
  }

  // The canonical dump: a sample's flows by their numbers, slots that are free empty.
  NamedTensors outputs() override {
    const Extents& e = step_.extents;
    const at::Tensor here = fields_["forward_id"].eq(generation_);
    const auto shown = [&](const char* name, at::IntArrayRef shape, const at::Tensor& mask, double otherwise) {
      const at::Tensor field = name == std::string("hidden") ? fields_[name].to(at::kFloat) : fields_[name];
      return at::where(mask, field, at::full({}, otherwise, field.options())).view(shape);
    };
    const auto one = [&](const char* name, double otherwise) {
      return shown(name, {e.samples, e.slots}, here, otherwise);
    };
    std::int64_t bytes = 0;
    for (const auto& [name, tensor] : fields_) bytes += static_cast<std::int64_t>(tensor.nbytes());
    const at::Tensor free = fields_["forward_id"].ne(generation_ + 1).sum().view({1});  // to the next forward
    const auto whole = [&](std::int64_t value, at::ScalarType dtype) {
      return at::full({1}, value, at::TensorOptions(device_).dtype(dtype));
    };
    return {{"stored_position", shown("position", {3, e.samples, e.slots}, here, 0)},
            {"stored_energy", one("energy", 0)},
            {"stored_hidden", shown("hidden", {e.layers, e.samples, e.slots, e.hidden}, here.unsqueeze(-1), 0)},
            {"sample", one("sample", -1)},
            {"local_id", one("local_id", -1)},
            {"age", one("age", 0)},
            {"stored_status", one("status", 0)},
            {"stored_distance", one("distance", 0)},
            {"stored_cell", one("cell", -1)},
            {"forward_id", one("forward_id", 0)},
            {"slots_free_after", free},
            {"bytes", whole(bytes, at::kLong)},
            {"generation", whole(generation_, at::kInt)}};
  }

 protected:
  virtual void store(const Step& step) = 0;

  Step step_;

 private:
  NamedTensors inputs_;
  const std::int64_t forwards_, steps_, first_;
  const c10::Device device_;
  NamedTensors fields_;  // the storage, all of it
  std::int32_t generation_ = 0;
};

}  // namespace twinbench::energy_flow::flow_storage
