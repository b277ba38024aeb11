// The carrier heads' steps, the same on both paths: the first layers of all heads in one product over all flows, one
// pass that finishes each flow; backward the way through the second layers, sums over flows included, and two products.
// A path says how each step is done.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/energy_flow/carrier_heads/arguments.h"
#include "optimized/common/packing.h"
#include "optimized/common/two_halves.h"
#include "optimized/energy_flow/common/layer_parts.h"
#include "optimized/energy_flow/common/rules_of.h"

namespace twinbench::energy_flow::carrier_heads {

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
    out_bias_ = second_biases(inputs);
    // Copies, so that they start where vectors may.
    energy_weight_ = operand_of(inputs["energy_out_weight"], setting).clone();
    displacement_weight_ = operand_of(inputs["displacement_out_weight"], setting).clone();
    gate_weight_ = operand_of(inputs["gate_out_weight"], setting).clone();
    sums_ = matrix(columns().all);
    forward_ = {.rule = heads_rule<Real>(setting, setting.on("gate")),
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
    forward_.rule.key.step = static_cast<std::uint32_t>(setting.option("step"));
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
    product(sums_, operand_, first_weight_t_);
    finish(forward_);
  }

  void run_backward() override {
    if (flows_ == 0) return;
    const at::NoGradGuard no_tape;
    differentiate(backward_arguments_);
    product(grad_first_weight_, trained_sums_t_, operand_);
    product(grad_carried_, trained_sums_, trained_weight_);
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
  virtual void product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) = 0;  // out = a b
  virtual void round_operand(const at::Tensor& from, const at::Tensor& to) = 0;
  virtual void finish(const ForwardArguments<Real>& a) = 0;
  // The gradients of the first layers' sums and of the second layers' parameters and the first layers' biases.
  virtual void differentiate(const BackwardArguments<Real>& a) = 0;

  std::int64_t flows() const { return flows_; }
  const Columns& columns() const { return forward_.columns; }
  at::Tensor matrix(std::int64_t columns) const { return at::empty({flows_, columns}, carried_.options()); }

  void copy_transposed() { first_weight_t_ = first_weight_t_.contiguous(); }  // for a product that reads it by rows
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
  void join_first_layers(const Setting& setting, at::ScalarType operand_type, std::int64_t alignment) {
    const FirstLayers joined = first_layers(inputs_, setting.on("gate"), alignment);
    first_weight_ = operand_of(joined.weight, setting, operand_type);
    first_weight_t_ = first_weight_.t();
    first_bias_ = joined.bias;
    forward_.columns = joined.columns;
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
