// A baseline with one differentiable output, run forward or through the tape: what is the same in every one of them.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <string>
#include <utility>
#include <vector>

#include "baselines/common/layers.h"
#include "src/component.h"

namespace twinbench {

// Runs result() of a derived class. Forward: output `output`. Backward: the gradients "grad_<input>" of every
// differentiable input under the given "grad_<output>"; the tape is the graph that result() builds.
class AutogradBaseline : public Runnable {
 public:
  AutogradBaseline(const NamedTensors& inputs, const Setting& setting, std::string output, std::vector<std::string> differentiable)
      : inputs_(inputs), backward_(setting.input_case.pass == Pass::kBackward), output_(std::move(output)), differentiable_(std::move(differentiable)) {}

  void run() override {
    const WithoutOneDnn plain_gelu;
    if (!backward_) {
      const at::NoGradGuard no_tape;
      results_ = {{output_, result()}};
      return;
    }
    const at::AutoGradMode tape(true);
    torch::autograd::variable_list leaves;
    for (const auto& name : differentiable_) leaves.push_back(inputs_[name]);
    const auto gradients = torch::autograd::grad({result()}, leaves, {inputs_["grad_" + output_]}, std::nullopt, false, /*allow_unused=*/true);
    results_ = {};
    for (std::size_t i = 0; i < leaves.size(); ++i)  // without a batch item no weight is on the tape
      results_.set("grad_" + differentiable_[i], gradients[i].defined() ? gradients[i] : at::zeros_like(leaves[i]).detach());
  }

  NamedTensors outputs() override {
    NamedTensors contiguous;  // a gradient takes over the strides of its input
    for (const auto& [name, tensor] : results_) contiguous.set(name, tensor.contiguous());
    return contiguous;
  }

 protected:
  virtual at::Tensor result() = 0;

  // Makes the differentiable inputs leaves of the tape. Last in a derived constructor: whatever it did to the inputs, such
  // as rounding weights, is then no part of the tape.
  void make_leaves() {
    if (backward_)
      for (const auto& name : differentiable_) inputs_.set(name, inputs_[name].detach().requires_grad_(true));
  }

  NamedTensors inputs_;
  const bool backward_;

 private:
  std::string output_;
  std::vector<std::string> differentiable_;
  NamedTensors results_;
};

}  // namespace twinbench
