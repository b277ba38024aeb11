// Library variant of sem.selective_scan: the chunked associative form in ATen. All chunks at once go step by step, then
// the chunks' ends one after the other: 2 sqrt(steps) operators instead of 2 steps.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "baselines/common/tape.h"
#include "src/sem/common/scan_limits.h"

namespace twinbench::sem::selective_scan {
namespace {

at::Tensor from_planes(const at::Tensor& planes) { return at::complex(planes.select(0, 0), planes.select(0, 1)); }

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary),
        batch_(setting.size("batch")),
        steps_(setting.size("steps")),
        groups_(setting.size("groups")),
        width_(setting.size("width")),
        states_(setting.size("states")),
        chunk_(static_cast<std::int64_t>(setting.option("chunk"))) {
    if (chunk_ == 0)
      chunk_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::sqrt(static_cast<double>(steps_))));
    if (batch_ * steps_ == 0 && !backward_)
      results_ = {{"output", at::zeros_like(inputs["input"], at::MemoryFormat::Contiguous)},
                  {"largest_state", at::zeros({batch_}, inputs["input"].options())}};
    for (const InputSpec& input : inputs_of(*setting.signature, setting))
      inputs_.set(input.name, inputs_[input.name].contiguous());
    make_leaves();
  }

 private:
  void compute() override {
    if (batch_ * steps_ == 0) return;
    const at::Tensor planes = inputs_["input"].view({2, -1, width_});
    const at::Tensor both = at::cat({planes.select(0, 0), planes.select(0, 1)}, 1);
    const at::Tensor logits = at::addmm(inputs_["dt_bias"], both, inputs_["dt_weight"].t());
    // Clamped before the exponential: after it, an infinite one would make the gradient NaN.
    const at::Tensor step =
        at::exp(at::clamp(logits, std::log(kShortestStep), std::log(kLongestStep))).view({batch_, steps_, groups_, 2});
    const at::Tensor length = step.narrow(3, 0, 1), turn = step.narrow(3, 1, 1);
    const at::Tensor rate = at::softplus(inputs_["a_raw"], 1, 40);
    const at::Tensor decay = at::polar(at::exp(length * -rate), turn * inputs_["a_phase"]);
    const at::Tensor projected = from_planes(planes).mm(from_planes(inputs_["input_projection"]).t());
    const at::Tensor state = scan(decay, projected.view({batch_, steps_, groups_, states_}) * length);
    const at::Tensor output = state.reshape({-1, states_}).mm(from_planes(inputs_["output_projection"]).t());
    result("output", at::stack({at::real(output), at::imag(output)}).view({2, batch_, steps_, groups_, width_}));
    if (!backward_) results_.set("largest_state", at::amax(at::abs(state), {1, 2, 3}));
  }

  // [batch, steps, groups, states] both.
  at::Tensor scan(const at::Tensor& decay, const at::Tensor& added) const {
    const std::int64_t chunks = (steps_ + chunk_ - 1) / chunk_, past = chunks * chunk_ - steps_;
    const auto in_chunks = [&](const at::Tensor& all) {
      const at::Tensor whole = past == 0 ? all : at::constant_pad_nd(all, {0, 0, 0, 0, 0, past});
      return whole.view({batch_, chunks, chunk_, groups_, states_});
    };
    const at::Tensor whole_decays = in_chunks(decay), whole_inputs = in_chunks(added);
    const auto decays = whole_decays.unbind(2), inputs = whole_inputs.unbind(2);
    // From the start of every chunk: the product of decays and the state that began with nothing. Without a tape the
    // arrays that are there take them.
    std::vector<at::Tensor> products = {decays[0]}, states = {inputs[0]};
    for (std::size_t i = 1; i < decays.size(); ++i) {
      states.push_back(backward_ ? at::addcmul(inputs[i], decays[i], states.back())
                                 : inputs[i].addcmul_(decays[i], states.back()));
      products.push_back(backward_ ? decays[i] * products.back() : decays[i].mul_(products.back()));
    }
    // The state at the start of every chunk.
    const auto end_products = products.back().unbind(1), end_states = states.back().unbind(1);
    std::vector<at::Tensor> starts = {at::zeros_like(end_states[0])};
    for (std::size_t i = 0; i + 1 < end_states.size(); ++i)
      starts.push_back(at::addcmul(end_states[i], end_products[i], starts.back()));
    const at::Tensor start = at::stack(starts, 1).unsqueeze(2);
    const at::Tensor all = backward_ ? at::addcmul(at::stack(states, 2), at::stack(products, 2), start)
                                     : whole_inputs.addcmul_(whole_decays, start);
    return all.view({batch_, chunks * chunk_, groups_, states_}).narrow(1, 0, steps_);
  }

  const std::int64_t batch_, steps_, groups_, width_, states_;
  std::int64_t chunk_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::sem::selective_scan
