// energy_flow.flow_compaction, library: LibTorch's own selection. The live places by nonzero, children merged by a
// stable sort of the samples, payload by one index_select each, then one pass over the rows that are left.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::flow_compaction {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting, Way::kLibrary) {
    const at::Tensor extent = inputs["extent"].cpu();
    listed_ = extent[0].item<std::int64_t>(), span_ = extent[1].item<std::int64_t>();
    children_ = inputs["parent"].ge(0).sum().item<std::int64_t>();
    child_places_ = at::arange(listed_, listed_ + children_, inputs["list"].options());
    born_ = at::zeros({children_}, inputs["age"].options());
  }

  NamedTensors outputs() override {
    const at::Tensor& list = inputs_["list"];
    const std::int64_t active = results_["order"].size(0), rows = setting_.size("rows");
    NamedTensors padded;
    for (const auto& [name, tensor] : results_) {
      const std::int64_t axis = name == "row_hidden" ? 1 : tensor.dim() - 1;
      auto shape = tensor.sizes().vec();
      shape[static_cast<std::size_t>(axis)] = rows;
      const at::Tensor all = at::full(shape, name == "order" ? -1 : 0, tensor.options());
      all.narrow(axis, 0, active).copy_(tensor);
      padded.set(name, all);
    }
    const std::int64_t padding = (128 - active % 128) % 128, sparse = 2 * active < span_ + children_ ? 1 : 0;
    padded.set("counts", at::tensor({active, active - children_, padding, sparse}, list.options()));
    return padded;
  }

 private:
  void compute() override {
    const at::Tensor list = inputs_["list"].narrow(0, 0, listed_);
    const at::Tensor sample = inputs_["sample"].index_select(0, list);
    const at::Tensor stopped = inputs_["stopped"].index_select(0, sample);
    const at::Tensor live = inputs_["status"].index_select(0, list).eq(1).logical_and_(stopped.logical_not());
    const at::Tensor kept = live.nonzero().squeeze(1);
    const at::Tensor slot = list.index_select(0, kept), own = sample.index_select(0, kept);
    const auto of_slots = [&](const char* name) { return inputs_[name].index_select(inputs_[name].dim() - 1, slot); };
    if (children_ == 0) {
      results_.set("order", kept.to(at::kInt));
      results_.set("row_sample", own);
      for (const char* name : {"local_id", "age", "energy", "position"})
        results_.set(std::string("row_") + name, of_slots(name));
      step(slot);
      return;
    }
    const at::Tensor parent = inputs_["parent"].narrow(0, 0, children_);
    const at::Tensor samples = at::cat({own, sample.index_select(0, parent)});
    const at::Tensor from = at::argsort(samples, /*stable=*/true, 0, false);
    const auto merged = [&](const at::Tensor& flows, const at::Tensor& children) {
      const std::int64_t axis = flows.dim() - 1;
      return at::cat({flows, children}, axis).index_select(axis, from);
    };
    const auto child = [&](const char* name) { return inputs_[name].narrow(inputs_[name].dim() - 1, 0, children_); };
    results_.set("order", merged(kept.to(at::kInt), child_places_));
    results_.set("row_sample", samples.index_select(0, from));
    results_.set("row_local_id", merged(of_slots("local_id"), child("child_local_id")));
    results_.set("row_age", merged(of_slots("age"), born_));
    results_.set("row_energy", merged(of_slots("energy"), child("child_energy")));
    results_.set("row_position", merged(of_slots("position"), child("child_position")));
    step(merged(slot, list.index_select(0, parent)));
  }

  void step(const at::Tensor& slots) {
    const at::Tensor hidden = inputs_["hidden"].index_select(1, slots);
    const at::Tensor stays = at::mul(hidden, inputs_["gate"].unsqueeze(1)).sigmoid_();
    const at::Tensor fresh = at::mul(hidden, inputs_["candidate"].unsqueeze(1)).tanh_();
    results_.set("row_hidden", at::lerp(fresh, hidden, stays));
  }

  std::int64_t listed_ = 0, span_ = 0, children_ = 0;
  at::Tensor child_places_, born_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_compaction
