// Baseline of sem.selective_scan: complex arrays of every state at every step, and a loop of the host over time.
#include <ATen/ATen.h>

#include "src/component.h"
#include "src/sem/common/scan_limits.h"

namespace twinbench::sem::selective_scan {
namespace {

// [2, ...] real planes to complex numbers and back: the documented conversion at the boundary.
at::Tensor from_planes(const at::Tensor& planes) { return at::complex(planes.select(0, 0), planes.select(0, 1)); }
at::Tensor planes_of(const at::Tensor& numbers) { return at::stack({at::real(numbers), at::imag(numbers)}); }
at::Tensor conjugate(const at::Tensor& numbers) { return at::conj_physical(numbers); }

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        batch_(setting.size("batch")),
        steps_(setting.size("steps")),
        groups_(setting.size("groups")),
        width_(setting.size("width")),
        states_(setting.size("states")),
        backward_(setting.backward()),
        cumulative_product_(setting.on("cumulative_product")) {
    for (const char* planes : {"input", "grad_output", "input_projection", "output_projection"})
      if (inputs.contains(planes)) inputs_.set(planes, inputs[planes].contiguous());
    if (batch_ * steps_ > 0) return;
    if (backward_)  // of nothing
      for (const auto& [name, tensor] : inputs)
        if (name != "grad_output") results_.set("grad_" + name, at::zeros_like(tensor, at::MemoryFormat::Contiguous));
    if (!backward_)
      results_ = {{"output", at::zeros_like(inputs["input"], at::MemoryFormat::Contiguous)},
                  {"largest_state", at::zeros({batch_}, inputs["input"].options())}};
  }

  void run() override {
    if (batch_ * steps_ == 0) return;
    discretise();
    cumulative_product_ ? divide_by_product() : scan();
    const at::Tensor out_of = from_planes(inputs_["output_projection"]);
    if (backward_) return run_backward(out_of);
    const at::Tensor output = at::mm(rows(state_, states_), out_of.t());
    results_ = {{"output", planes_of(by_step(output, width_))},
                {"largest_state", at::amax(at::abs(state_), {1, 2, 3})}};
  }

  NamedTensors outputs() override { return results_; }

 private:
  at::Tensor rows(const at::Tensor& tensor, std::int64_t columns) const { return tensor.view({-1, columns}); }
  at::Tensor by_step(const at::Tensor& tensor, std::int64_t columns) const {
    return tensor.view({batch_, steps_, groups_, columns});
  }

  // Decay and input of every state at every step, [batch, steps, groups, states] each.
  void discretise() {
    const at::Tensor& planes = inputs_["input"];
    input_ = rows(from_planes(planes), width_);
    both_ = rows(at::cat({planes.select(0, 0), planes.select(0, 1)}, 3), 2 * width_);
    exponential_ = at::exp(at::addmm(inputs_["dt_bias"], both_, inputs_["dt_weight"].t()));
    const at::Tensor step = by_step(at::clamp(exponential_, kShortestStep, kLongestStep), 2);
    length_ = step.narrow(3, 0, 1), turn_ = step.narrow(3, 1, 1);
    rate_ = at::softplus(inputs_["a_raw"], /*beta=*/1, /*threshold=*/40);
    const at::Tensor modulus = at::exp(at::neg(at::mul(length_, rate_)));
    decay_ = at::polar(modulus, at::mul(turn_, inputs_["a_phase"]));
    into_ = from_planes(inputs_["input_projection"]);
    projected_ = by_step(at::mm(input_, into_.t()), states_);
    added_ = at::mul(projected_, length_);
  }

  void scan() {
    state_ = at::empty_like(decay_);
    at::Tensor state = at::zeros({batch_, groups_, states_}, decay_.options());
    for (std::int64_t step = 0; step < steps_; ++step) {
      state = at::add(at::mul(decay_.select(1, step), state), added_.select(1, step));
      state_.select(1, step).copy_(state);
    }
  }

  // The documented mistake: state = product of the decays * running sum of (input / product of the decays).
  void divide_by_product() {
    const at::Tensor product = at::cumprod(decay_, 1);
    state_ = at::mul(product, at::cumsum(at::div(added_, product), 1));
  }

  void run_backward(const at::Tensor& out_of) {
    const at::Tensor gradient = rows(from_planes(inputs_["grad_output"]), width_);
    const at::Tensor of_outputs = by_step(at::mm(gradient, conjugate(out_of)), states_);
    const at::Tensor of_out_of = at::mm(gradient.t(), rows(conjugate(state_), states_));
    // Backwards through time: the gradient of every state, and its product with what came before, by which decays go.
    const at::Tensor of_state = at::empty_like(decay_), of_decay = at::zeros_like(decay_);
    at::Tensor carried = at::zeros({batch_, groups_, states_}, decay_.options());
    for (std::int64_t step = steps_ - 1; step >= 0; --step) {
      const at::Tensor here = at::add(of_outputs.select(1, step), carried);
      of_state.select(1, step).copy_(here);
      carried = at::mul(conjugate(decay_.select(1, step)), here);
      if (step > 0) of_decay.select(1, step).copy_(at::mul(carried, conjugate(state_.select(1, step - 1))));
    }
    const at::Tensor shrinking = at::real(of_decay), turning = at::imag(of_decay);
    const at::Tensor growing = at::real(at::mul(conjugate(of_state), projected_));
    const at::Tensor of_length = at::sum(at::sub(growing, at::mul(shrinking, rate_)), at::IntArrayRef{3});
    const at::Tensor of_turn = at::sum(at::mul(turning, inputs_["a_phase"]), at::IntArrayRef{3});
    const at::Tensor of_rate = at::neg(at::sum(at::mul(shrinking, length_), at::IntArrayRef{0, 1}));
    const at::Tensor inside = at::logical_and(at::gt(exponential_, kShortestStep), at::lt(exponential_, kLongestStep));
    const at::Tensor of_logits = at::where(inside, at::mul(rows(at::stack({of_length, of_turn}, 3), 2), exponential_),
                                           at::zeros_like(exponential_));
    const at::Tensor of_projected = rows(at::mul(of_state, length_), states_);
    const at::Tensor of_input = at::mm(of_projected, conjugate(into_)),
                     of_both = at::mm(of_logits, inputs_["dt_weight"]);
    const at::Tensor of_real = at::add(at::real(of_input), of_both.narrow(1, 0, width_)),
                     of_imaginary = at::add(at::imag(of_input), of_both.narrow(1, width_, width_));
    results_ = {{"grad_input", at::stack({by_step(of_real, width_), by_step(of_imaginary, width_)})},
                {"grad_a_raw", at::mul(of_rate, at::sigmoid(inputs_["a_raw"]))},
                {"grad_a_phase", at::sum(at::mul(turning, turn_), at::IntArrayRef{0, 1})},
                {"grad_input_projection", planes_of(at::mm(of_projected.t(), conjugate(input_)))},
                {"grad_output_projection", planes_of(of_out_of)},
                {"grad_dt_weight", at::mm(of_logits.t(), both_)},
                {"grad_dt_bias", at::sum(of_logits, at::IntArrayRef{0})}};
  }

  NamedTensors inputs_, results_;
  const std::int64_t batch_, steps_, groups_, width_, states_;
  const bool backward_, cumulative_product_;
  at::Tensor input_, both_, exponential_, length_, turn_, rate_, decay_, into_, projected_, added_, state_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::sem::selective_scan
