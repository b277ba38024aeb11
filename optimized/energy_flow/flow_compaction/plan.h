// What both paths of energy_flow.flow_compaction share: tensors as loops and kernels take them, the second storage, and
// the rows in the order of samples and local ids, whichever slots they lie in.
#pragma once

#include <ATen/ATen.h>

#include <string>

#include "kernels/energy_flow/flow_compaction/arguments.h"
#include "optimized/common/tensors.h"

namespace twinbench::energy_flow::flow_compaction {

class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting) : inputs_(inputs) {
    const auto size = [&](const char* name) { return static_cast<std::int32_t>(setting.size(name)); };
    const std::int64_t slots = setting.size("slots"), samples = setting.size("samples");
    const std::int64_t rows = setting.size("rows"), places = setting.size("flows");
    const std::int64_t layers = setting.size("layers"), hidden = setting.size("hidden");
    const auto whole = [&](std::int64_t count) {
      return at::zeros({count}, at::TensorOptions(setting.device).dtype(at::kInt));
    };
    for (const char* name : {"sample", "local_id", "age"}) own_.set(name, whole(slots));
    for (const char* name : {"list", "order"}) own_.set(name, whole(rows));
    for (const char* name : {"entry", "kept", "kept_slot"}) own_.set(name, whole(places));
    for (const char* name : {"children_before", "survivors_through"}) own_.set(name, whole(samples));
    own_.set("tile_counts", whole(tiles_of(places)));
    own_.set("totals", whole(2));
    own_.set("counts", whole(4));
    const auto floats = at::TensorOptions(setting.device).dtype(at::kFloat);
    own_.set("position", at::zeros({3, slots}, floats));
    own_.set("energy", at::zeros({slots}, floats));
    own_.set("hidden", at::zeros({layers, slots, hidden}, floats));
    arguments_ = {.samples = size("samples"),
                  .slots = size("slots"),
                  .places = size("flows"),
                  .children = size("children"),
                  .layers = size("layers"),
                  .hidden = size("hidden"),
                  .rows = static_cast<Rows>(static_cast<int>(setting.option("row_access"))),
                  .cleanup = is_cleanup_step(static_cast<std::int64_t>(setting.option("step")),
                                             static_cast<std::int64_t>(setting.option("cleanup_interval"))),
                  .list = given<std::int32_t>(inputs_, "list"),
                  .extent = given<std::int32_t>(inputs_, "extent"),
                  .status = given<std::uint8_t>(inputs_, "status"),
                  .stopped = given<bool>(inputs_, "stopped"),
                  .flows = {.sample = given<std::int32_t>(inputs_, "sample"),
                            .local_id = given<std::int32_t>(inputs_, "local_id"),
                            .age = given<std::int32_t>(inputs_, "age"),
                            .position = given<float>(inputs_, "position"),
                            .energy = given<float>(inputs_, "energy"),
                            .hidden = given<float>(inputs_, "hidden")},
                  .parent = given<std::int32_t>(inputs_, "parent"),
                  .child_local_id = given<std::int32_t>(inputs_, "child_local_id"),
                  .child_position = given<float>(inputs_, "child_position"),
                  .child_energy = given<float>(inputs_, "child_energy"),
                  .gate = given<float>(inputs_, "gate"),
                  .candidate = given<float>(inputs_, "candidate"),
                  .next_list = words("list"),
                  .order = words("order"),
                  .next_sample = words("sample"),
                  .next_local_id = words("local_id"),
                  .next_age = words("age"),
                  .next_position = data<float>(own_["position"]),
                  .next_energy = data<float>(own_["energy"]),
                  .next_hidden = data<float>(own_["hidden"]),
                  .counts = words("counts"),
                  .entry = words("entry"),
                  .kept = words("kept"),
                  .kept_slot = words("kept_slot"),
                  .tile_counts = words("tile_counts"),
                  .children_before = words("children_before"),
                  .survivors_through = words("survivors_through"),
                  .totals = words("totals")};
  }

  // Beyond the last row: -1 in the order, zeros elsewhere.
  NamedTensors outputs() override {
    const at::Tensor row = at::arange(arguments_.rows_at_most(), own_["list"].options());
    const at::Tensor there = row.lt(own_["counts"][0]), slot = at::where(there, own_["list"], 0);
    NamedTensors results{{"order", at::where(there, own_["order"], -1)}};
    for (const char* name : {"sample", "local_id", "age", "energy", "position"}) {
      const at::Tensor& stored = own_[name];
      results.set(std::string("row_") + name, at::where(there, stored.index_select(stored.dim() - 1, slot), 0));
    }
    results.set("row_hidden", at::where(there.unsqueeze(1), own_["hidden"].index_select(1, slot), 0));
    results.set("counts", own_["counts"]);
    return results;
  }

 protected:
  Arguments arguments_;

 private:
  std::int32_t* words(const char* name) const { return data<std::int32_t>(own_[name]); }

  NamedTensors inputs_;  // kept alive: the arguments point into them
  NamedTensors own_;     // the second storage, and what lies between the kernels
};

}  // namespace twinbench::energy_flow::flow_compaction
