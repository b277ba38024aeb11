// The carrier heads' steps, the same on both paths: the first layers of all heads in one product over all flows, one
// pass that finishes each flow; backward the way through the second layers, sums over flows included, and two products.
// A path says how each step is done.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/energy_flow/carrier_heads/arguments.h"
#include "optimized/common/packing.h"
#include "optimized/common/products.h"
#include "optimized/common/two_halves.h"
#include "src/energy_flow/common/exploration_scale.h"

namespace twinbench::energy_flow::carrier_heads {

template <class Real>
Rule<Real> rule_of(const Setting& setting) {
  return {.scale = static_cast<Real>(exploration_scale(setting)),
          .noise = static_cast<Real>(setting.option("noise")),
          .noise_on_z = setting.on("noise_on_z") ? Real(1) : Real(0),
          .threshold = static_cast<Real>(setting.option(setting.on("gate") ? "gate_threshold" : "movement_threshold")),
          .most = static_cast<std::int32_t>(setting.option("most_spawned")),
          .gate = setting.on("gate"),
          .key = {.seed = static_cast<std::uint64_t>(setting.option("seed")),
                  .attempt = static_cast<std::uint32_t>(setting.option("attempt")),
                  .step = static_cast<std::uint32_t>(setting.option("step"))}};
}

template <class Real>
class Heads : public TwoHalves {
 public:
  // operand_type: what the large products take in bf16 mode. Rows of sums are padded to a multiple of `alignment`.
  Heads(const NamedTensors& inputs, const Setting& setting, at::ScalarType operand_type, std::int64_t alignment)
      : backward_(setting.backward()),
        round_(rounds_operands(setting)),
        flows_(setting.size("flows")),
        inputs_(inputs),
        forward_results_(zero_results(forward_of(setting))),
        carried_(inputs["carried"].contiguous()) {
    join_first_layers(setting, operand_type, alignment);
    operand_ = round_ ? at::empty(carried_.sizes(), carried_.options().dtype(operand_type)) : carried_;
    out_bias_ = at::cat({inputs["energy_out_bias"], inputs["displacement_out_bias"], inputs["gate_out_bias"]});
    // Copies, so that they start where vectors may.
    energy_weight_ = operand_of(inputs["energy_out_weight"], setting).clone();
    displacement_weight_ = operand_of(inputs["displacement_out_weight"], setting).clone();
    gate_weight_ = operand_of(inputs["gate_out_weight"], setting).clone();
    sums_ = matrix(columns().all);
    forward_ = {.rule = rule_of<Real>(setting),
                .columns = forward_.columns,
                .flows = flows_,
                .round = round_,
                .sums = data<Real>(sums_),
                .bias = data<Real>(first_bias_),
                .energy_out_weight = data<Real>(energy_weight_),
                .displacement_out_weight = data<Real>(displacement_weight_),
                .gate_out_weight = data<Real>(gate_weight_),
                .out_bias = data<Real>(out_bias_),
                .position = given<Real>(inputs_, "position"),
                .sample_key = given<std::int64_t>(inputs_, "sample_key"),
                .local_id = given<std::int64_t>(inputs_, "local_id"),
                .energy = result("energy"),
                .displacement = result("displacement"),
                .delta = result("delta"),
                .raw = result("raw"),
                .spawn_measure = result("spawn_measure"),
                .spawn_count = data<std::int32_t>(forward_results_["spawn_count"]),
                .child_energy = result("child_energy")};
    if (backward_) prepare_backward(setting, operand_type);
  }

  void run() override {
    run_forward();
    if (backward_) run_backward();
  }

  void run_forward() override {
    if (flows_ == 0) return;
    const at::NoGradGuard no_tape;
    if (round_) round_operand(carried_, operand_);
    multiply(sums_, operand_, first_weight_t_);
    finish(forward_);
  }

  void run_backward() override {
    if (flows_ == 0) return;
    const at::NoGradGuard no_tape;
    differentiate(backward_arguments_);
    multiply(grad_first_weight_, trained_sums_t_, operand_);
    multiply(grad_carried_, trained_sums_, trained_weight_);
  }

  NamedTensors forward_outputs() override { return forward_results_; }
  std::vector<at::Tensor> kept() override {
    std::vector<at::Tensor> kept = {sums_, second_sums_, forward_results_["spawn_count"]};
    if (activated_.defined()) kept.push_back(activated_);
    if (round_) kept.push_back(operand_);
    return kept;
  }
  NamedTensors outputs() override { return backward_ ? gradients_ : forward_results_; }

 protected:
  virtual void round_operand(const at::Tensor& from, const at::Tensor& to) = 0;
  virtual void finish(const ForwardArguments<Real>& a) = 0;
  // The gradients of the first layers' sums and of the second layers' parameters and the first layers' biases.
  virtual void differentiate(const BackwardArguments<Real>& a) = 0;

  std::int64_t flows() const { return flows_; }
  const Columns& columns() const { return forward_.columns; }
  at::Tensor matrix(std::int64_t columns) const { return at::empty({flows_, columns}, carried_.options()); }

  void keep_activated() {
    activated_ = matrix(columns().all);
    forward_.activated = data<Real>(activated_);
  }

  void set_gradient(const std::string& name, const at::Tensor& value) { gradients_.set("grad_" + name, value); }
  // Views of the first layers' bias gradients, one after the other.
  void set_bias_gradients(const at::Tensor& joined) {
    set_gradient("energy_hidden_bias", joined.narrow(0, 0, columns().energy_width));
    set_gradient("displacement_hidden_bias", joined.narrow(0, columns().displacement(), columns().head_width));
    if (forward_.rule.gate) set_gradient("child_bias", joined.narrow(0, columns().child(), 1));
  }
  bool rounds() const { return round_; }
  bool gate() const { return forward_.rule.gate; }
  std::int64_t trained() const {
    return columns().child() + (gate() ? 1 : 0);
  }  // leading columns; not the spawn gate's

  at::Tensor sums_;  // [flows, all]: of the first layers; after the backward pass their gradients, unless rounded apart
  at::Tensor activated_;
  BackwardArguments<Real> backward_arguments_;

 private:
  // The first layers of all heads in one matrix, with zeros in the padding.
  void join_first_layers(const Setting& setting, at::ScalarType operand_type, std::int64_t alignment) {
    std::vector<at::Tensor> weights = {inputs_["energy_hidden_weight"], inputs_["displacement_hidden_weight"]};
    std::vector<at::Tensor> biases = {inputs_["energy_hidden_bias"], inputs_["displacement_hidden_bias"]};
    if (setting.on("gate")) {
      constexpr std::int64_t kUnused = Columns::kChildColumns - 1;
      const at::Tensor no_bias = at::zeros({kUnused}, carried_.options());
      weights.insert(weights.end(), {inputs_["child_weight"], at::zeros({kUnused, carried_.size(1)}, no_bias.options()),
                                     inputs_["gate_hidden_weight"]});
      biases.insert(biases.end(), {inputs_["child_bias"], no_bias, inputs_["gate_hidden_bias"]});
    }
    const at::Tensor joined = at::cat(weights, 0);
    const std::int64_t padding = (alignment - joined.size(0) % alignment) % alignment;
    first_weight_ = operand_of(at::constant_pad_nd(joined, {0, 0, 0, padding}), setting, operand_type);
    first_weight_t_ = first_weight_.t();
    first_bias_ = at::constant_pad_nd(at::cat(biases, 0), {0, padding}).contiguous();
    forward_.columns = {.energy_width = static_cast<std::int32_t>(setting.size("energy_width")),
                        .head_width = static_cast<std::int32_t>(setting.size("head_width")),
                        .all = static_cast<std::int32_t>(joined.size(0) + padding)};
  }

  void prepare_backward(const Setting& setting, at::ScalarType operand_type) {
    second_sums_ = at::empty({kKeptSums, flows_}, carried_.options());
    forward_.second_sums = data<Real>(second_sums_);
    const bool copies = round_ && operand_type == at::kBFloat16;
    if (copies) sums_operand_ = at::zeros(sums_.sizes(), sums_.options().dtype(operand_type));
    trained_sums_ = (copies ? sums_operand_ : sums_).narrow(1, 0, trained());
    trained_sums_t_ = trained_sums_.t();
    trained_weight_ = first_weight_.narrow(0, 0, trained());
    backward_arguments_ = {.rule = forward_.rule,
                           .columns = columns(),
                           .flows = flows_,
                           .bias = forward_.bias,
                           .energy_out_weight = forward_.energy_out_weight,
                           .displacement_out_weight = forward_.displacement_out_weight,
                           .second_sums = forward_.second_sums,
                           .spawn_count = forward_.spawn_count,
                           .grad_energy = given<Real>(inputs_, "grad_energy"),
                           .grad_displacement = given<Real>(inputs_, "grad_displacement"),
                           .grad_delta = given<Real>(inputs_, "grad_delta"),
                           .grad_raw = given<Real>(inputs_, "grad_raw"),
                           .grad_child_energy = given<Real>(inputs_, "grad_child_energy"),
                           .round = round_,
                           .sums = data<Real>(sums_)};
    if (copies)
      backward_arguments_.gradient.bf16 = data<std::uint16_t>(sums_operand_);
    else
      backward_arguments_.gradient.plain = data<Real>(sums_);
    gradients_ = zero_results(setting);
    grad_carried_ = gradients_["grad_carried"];
    grad_first_weight_ = at::zeros({trained(), carried_.size(1)}, carried_.options());
    set_gradient("position", inputs_["grad_raw"]);  // raw = position + delta + noise
    set_first_weight("energy_hidden", 0, columns().energy_width);
    set_first_weight("displacement_hidden", columns().displacement(), columns().head_width);
    if (gate()) set_first_weight("child", columns().child(), 1);
  }

  void set_first_weight(const std::string& head, std::int64_t from, std::int64_t count) {
    set_gradient(head + "_weight", grad_first_weight_.narrow(0, from, count));
  }

  Real* result(const std::string& name) const { return data<Real>(forward_results_[name]); }

  const bool backward_, round_;
  const std::int64_t flows_;
  NamedTensors inputs_;  // kept alive: the arguments point into them
  NamedTensors forward_results_, gradients_;
  ForwardArguments<Real> forward_;
  at::Tensor carried_, operand_;                           // as given; as the product takes it
  at::Tensor first_weight_, first_weight_t_, first_bias_;  // [all, hidden] and transposed, [all]
  at::Tensor energy_weight_, displacement_weight_, gate_weight_, out_bias_;
  at::Tensor second_sums_, sums_operand_;
  at::Tensor trained_sums_, trained_sums_t_, trained_weight_;  // views of the others
  at::Tensor grad_carried_, grad_first_weight_;
};

}  // namespace twinbench::energy_flow::carrier_heads
