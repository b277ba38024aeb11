// The tape of the baselines: leaves, roots and the replay. Alone here, so that no baseline compiles autograd's headers.
#include "baselines/common/tape.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "baselines/common/layers.h"
#include "src/rounding.h"

namespace twinbench {

TapeBaseline::TapeBaseline(const NamedTensors& inputs, const Setting& setting, Way way)
    : inputs_(inputs),
      setting_(setting),
      backward_(setting.backward()),
      round_(setting.rounds_as() == Dtype::kBf16),
      way_(way) {
  for (const auto& input : inputs_of(*setting.signature, setting))
    if (round_ && input.role == Role::kWeight) inputs_.set(input.name, rounded(inputs_[input.name], Dtype::kBf16));
}

void TapeBaseline::run() {
  std::optional<WithoutOneDnn> plain_gelu;
  if (way_ == Way::kBaseline) plain_gelu.emplace();
  for (auto& [name, copy] : on_host_)
    if (!inputs_[name].is_cpu()) copy = inputs_[name].cpu().contiguous();
  const at::AutoGradMode tape(backward_);
  compute();
  replay();
}

void TapeBaseline::replay() {
  if (roots_.empty()) return;  // forward; or not one batch item: the zeros made at set-up stay
  const auto found =
      torch::autograd::grad(roots_, leaves_, root_gradients_, std::nullopt, false, /*allow_unused=*/true);
  roots_.clear(), root_gradients_.clear();
  results_ = unused_;
  for (std::size_t i = 0; i < leaves_.size(); ++i)  // without a batch item no weight is on the tape
    results_.set("grad_" + leaf_names_[i], found[i].defined() ? found[i] : at::zeros_like(leaves_[i]).detach());
}

NamedTensors TapeBaseline::outputs() {
  NamedTensors contiguous;  // a gradient takes over the strides of its input
  for (const auto& [name, tensor] : results_) contiguous.set(name, tensor.contiguous());
  return contiguous;
}

void TapeBaseline::make_leaves(const std::vector<std::string>& unused) {
  if (!backward_) return;
  for (const auto& gradient : outputs_of(*setting_.signature, setting_)) {
    if (gradient.tolerance.kind == Tolerance::Kind::kMeasured) {  // a count of work that no tape does
      const auto options = inputs_.begin()->second.options().dtype(scalar_type(gradient.element, setting_.dtype));
      unused_.set(gradient.name, at::zeros(extents(gradient.shape, setting_), options));
      results_.set(gradient.name, unused_[gradient.name]);
      continue;
    }
    const std::string name = gradient.name.substr(5);  // grad_
    results_.set(gradient.name, at::zeros_like(inputs_[name]));
    if (std::find(unused.begin(), unused.end(), name) != unused.end()) {
      unused_.set(gradient.name, results_[gradient.name]);
      continue;
    }
    inputs_.set(name, inputs_[name].detach().requires_grad_(true));
    leaf_names_.push_back(name);
    leaves_.push_back(inputs_[name]);
  }
}

const at::Tensor& TapeBaseline::on_host(const std::string& input) {
  return on_host_.try_emplace(input, inputs_[input].cpu().contiguous()).first->second;
}

void TapeBaseline::result(const std::string& output, at::Tensor value) {
  if (backward_) return root(std::move(value), inputs_["grad_" + output]);
  results_.set(output, std::move(value));
}

void TapeBaseline::root(at::Tensor value, at::Tensor gradient) {
  roots_.push_back(std::move(value));
  root_gradients_.push_back(std::move(gradient));
}

at::Tensor TapeBaseline::linear(const at::Tensor& x, const std::string& weight, const std::string& bias) const {
  if (way_ == Way::kLibrary && round_ && x.is_cuda()) return product(x, weight) + inputs_[bias];
  return baseline_linear(x, inputs_[weight], inputs_[bias], round_);
}

at::Tensor TapeBaseline::product(const at::Tensor& x, const std::string& weight) const {
  return library_product(x, inputs_[weight], round_);
}

at::Tensor TapeBaseline::layer_norm(const at::Tensor& x, const std::string& gain, const std::string& shift) const {
  return at::layer_norm(x, {x.size(1)}, inputs_[gain], inputs_[shift], 1e-5);
}

}  // namespace twinbench
