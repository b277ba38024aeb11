// Baseline of energy_flow.flow_backward: the forward pass flow by flow, every operator's output on a tape, which is
// then replayed one flow-step and one operator at a time.
#include "baselines/energy_flow/common/taped_flows.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

template <class Real>
class Baseline final : public FlowsOnTape<Real> {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : FlowsOnTape<Real>(inputs, setting, zero_gradients(inputs, setting)) {}

 private:
  static NamedTensors zero_gradients(const NamedTensors& inputs, const Setting& setting) {
    NamedTensors gradients;
    if (!setting.backward()) return gradients;
    for (const auto& output : outputs_of(*setting.signature, setting))
      if (output.name.starts_with("grad_")) gradients.set(output.name, at::zeros_like(inputs[output.name.substr(5)]));
    return gradients;
  }

  void compute() override {
    this->forward();
    const std::int64_t held = this->tape_bytes();
    if (this->backward_) {
      for (const auto& [name, gradient] : this->gradients_) at::Tensor(gradient).zero_();
      this->replay(this->inputs_["grad_surface"]);
      this->give_tape();
      for (const auto& [name, gradient] : this->gradients_) this->results_.set(name, gradient);
    } else {
      this->results_.set("surface", this->surface_);
      this->host_results_.set("margin", this->margin());
    }
    const at::Tensor work = at::zeros({kWorkColumns}, at::kLong);
    auto* const of = work.mutable_data_ptr<std::int64_t>();
    this->count_work(of);
    of[kTapeBytes] = of[kTapePeak] = held, of[kTapeLeft] = this->tape_bytes();
    this->host_results_.set("work", work);
    this->groups_.clear();
  }
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<Baseline<double>>(inputs, setting);
  return std::make_unique<Baseline<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_backward
