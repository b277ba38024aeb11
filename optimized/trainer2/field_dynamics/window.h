// What both paths of trainer2.field_dynamics share: the advanced state, constants and arguments.
#pragma once

#include <ATen/ATen.h>

#include "kernels/trainer2/field_dynamics/arguments.h"
#include "optimized/common/tensors.h"
#include "src/trainer2/common/field_constants.h"

namespace twinbench::trainer2::field_dynamics {

class WindowState : public Runnable {
 public:
  WindowState(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        equilibrium_(inputs["equilibrium"].resolve_conj().contiguous()),
        history_(at::empty({histories(setting)}, inputs["history"].options())),
        results_(empty_results(setting)) {
    factors_ = at::empty({kHistories}, at::kFloat);
    for (int history = 0; history < kHistories; ++history)
      data<float>(factors_)[history] = dissipative_factor(setting, history);
    factors_ = factors_.to(equilibrium_.device());
    const FieldConstants by = field_constants(setting);
    arguments_ = {.width = static_cast<int>(setting.size("width")),
                  .height = static_cast<int>(setting.size("height")),
                  .dimension = static_cast<int>(setting.size("dimension")),
                  .steps = setting.size("steps"),
                  .dissipative = setting.on("dissipative"),
                  .by = {.half_kick = by.half_kick,
                         .drift = by.drift,
                         .kinetic = by.kinetic,
                         .stiffness = by.stiffness,
                         .turn = by.turn},
                  .field = numbers(results_["field"]),
                  .momentum = numbers(results_["momentum"]),
                  .equilibrium = numbers(equilibrium_),
                  .force = inputs["force"].const_data_ptr<float>(),
                  .force_stride = inputs["force"].stride(0),
                  .factors = factors_.const_data_ptr<float>(),
                  .history = data<std::int64_t>(history_),
                  .row_modulus = data<float>(results_["row_modulus"]),
                  .row_mean = data<float>(results_["row_mean"])};
    WindowState::reset();
  }

  void reset() override {
    results_["field"].copy_(inputs_["field"]);
    results_["momentum"].copy_(inputs_["momentum"]);
    history_.fill_(inputs_["history"].squeeze());
  }
  NamedTensors outputs() override {
    NamedTensors results = results_;
    results.set("history", history_.slice(0, 0, 1));
    return results;
  }

 protected:
  const Arguments& arguments() const { return arguments_; }

 private:
  static_assert(kHistories == kLongestHistory + 1);

  // As many as rows have blocks, which the CPU's path has not.
  static std::int64_t histories(const Setting& setting) {
    const auto size = [&](const char* name) { return static_cast<int>(setting.size(name)); };
    const int dimension = size("dimension");
    return std::int64_t{dimension} * Split::of(size("width"), size("height"), dimension).parts;
  }

  static float* numbers(const at::Tensor& complex) {
    return reinterpret_cast<float*>(complex.mutable_data_ptr<c10::complex<float>>());
  }

  NamedTensors inputs_;
  at::Tensor equilibrium_, history_, factors_;
  NamedTensors results_;
  Arguments arguments_;
};

}  // namespace twinbench::trainer2::field_dynamics
