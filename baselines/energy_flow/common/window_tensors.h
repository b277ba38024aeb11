// The end of a window in operators: gradient control and AdamW (C25, C26) tensor by tensor, sin N9, and as few
// operators for all tensors as ATen has.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/training_window.h"

namespace twinbench::energy_flow::train_step {

// Parameters, moments and gradients, a tensor each; those of an arena, so that they can be compared as a whole.
struct TrainedTensors {
  TrainedTensors() = default;
  TrainedTensors(const NamedTensors& inputs, const Setting& s)
      : firsts(inputs["first_moment"].clone()), seconds(inputs["second_moment"].clone()) {
    std::vector<at::Tensor> parts;
    for (const InputSpec& one : trained_parameters(s)) parts.push_back(inputs[one.name].reshape({-1}));
    values = at::cat(parts);
    gradients = at::zeros_like(values);
    std::int64_t from = 0;
    for (const InputSpec& one : trained_parameters(s)) {
      const at::Tensor& given = inputs[one.name];
      const auto part = [&](const at::Tensor& of) { return of.narrow(0, from, given.numel()).view(given.sizes()); };
      value.emplace_back(one.name, part(values));
      all_gradients.emplace_back(one.name, part(gradients));
      if (has_gradient(one.name, s)) {
        trained.push_back(part(values)), gradient.push_back(part(gradients));
        first.push_back(part(firsts)), second.push_back(part(seconds));
      }
      from += given.numel();
    }
  }

  void clear() { gradients.zero_(); }
  NamedTensors by_gradient() const {
    NamedTensors named;
    for (const auto& [name, tensor] : all_gradients) named.set("grad_" + name, tensor);
    return named;
  }

  at::Tensor values, firsts, seconds, gradients;
  std::vector<std::pair<std::string, at::Tensor>> value, all_gradients;  // of every parameter
  std::vector<at::Tensor> trained, gradient, first, second;              // of those that have a gradient
};

struct Update {
  double number, coefficient, rate, weight_decay;
  double root() const { return std::sqrt(1 - std::pow(kBetaSecond, number)); }
  double step() const { return rate / (1 - std::pow(kBetaFirst, number)); }
};

// Gradients are multiplied by the factor; the norm of all of them. A finite test and a norm are read of each.
inline double norm_by_tensor(TrainedTensors& t, double factor) {
  std::vector<at::Tensor> norms;
  for (at::Tensor& gradient : t.gradient) {
    if (factor != 1) gradient.mul_(factor);
    (void)at::all(at::isfinite(gradient)).item<bool>();
    norms.push_back(at::linalg_vector_norm(gradient, 2, at::OptionalIntArrayRef(), false, at::kDouble));
    (void)norms.back().item<double>();
  }
  return at::linalg_vector_norm(at::stack(norms), 2).item<double>();
}
inline double norm_of_all(TrainedTensors& t, double factor) {
  if (factor != 1) at::_foreach_mul_(t.gradient, factor);
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(t.gradient, 2, at::kDouble)), 2).item<double>();
}

inline void update_by_tensor(TrainedTensors& t, const Update& u) {
  for (std::size_t i = 0; i < t.gradient.size(); ++i) {
    at::Tensor &gradient = t.gradient[i], &first = t.first[i], &second = t.second[i];
    gradient.mul_(u.coefficient);
    t.trained[i].mul_(1 - u.rate * u.weight_decay);
    first.lerp_(gradient, 1 - kBetaFirst);
    second.mul_(kBetaSecond);
    second.addcmul_(gradient, gradient, 1 - kBetaSecond);
    t.trained[i].addcdiv_(first, at::sqrt(second).div_(u.root()).add_(kAdamEpsilon), -u.step());
  }
}
inline void update_all(TrainedTensors& t, const Update& u) {
  at::_foreach_mul_(t.gradient, u.coefficient);
  at::_foreach_mul_(t.trained, 1 - u.rate * u.weight_decay);
  at::_foreach_lerp_(t.first, t.gradient, 1 - kBetaFirst);
  at::_foreach_mul_(t.second, kBetaSecond);
  at::_foreach_addcmul_(t.second, t.gradient, t.gradient, 1 - kBetaSecond);
  std::vector<at::Tensor> denominators = at::_foreach_sqrt(t.second);
  at::_foreach_div_(denominators, u.root());
  at::_foreach_add_(denominators, kAdamEpsilon);
  at::_foreach_addcdiv_(t.trained, t.first, denominators, -u.step());
}

// Of the loss scale, kept up to date whether it is used or not.
inline void move_scale(std::vector<std::int64_t>& counts, WindowStatus status, double good_windows) {
  if (status == WindowStatus::kNotFinite) {
    counts[kScaleExponent] = std::max<std::int64_t>(counts[kScaleExponent] - 1, 0), counts[kGoodSteps] = 0;
  } else if (status == WindowStatus::kApplied && ++counts[kGoodSteps] >= good_windows) {
    counts[kScaleExponent] = std::min(counts[kScaleExponent] + 1, kMostExponent), counts[kGoodSteps] = 0;
  }
}

}  // namespace twinbench::energy_flow::train_step
