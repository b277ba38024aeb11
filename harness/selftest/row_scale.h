// The elementwise component of the selftest: y[i, j] = tanh(x[i, j]) scale[i], with a correct twin to derive wrong ones
// from.
#pragma once

#include <memory>

#include "src/make_runnable.h"
#include "src/registry.h"

namespace twinbench::selftest {

// The optimized twin: one loop, nothing allocated after setup. Wrong twins override one of the two functions.
class RowScale : public Runnable {
 public:
  // x fp32 [items, width], scale fp32 [items]; any strides. Throws kBadDtype.
  RowScale(const NamedTensors& inputs, const Setting& setting);
  void run() override;
  NamedTensors outputs() override { return {{"y", y_}}; }

 protected:
  virtual void compute(const float* x, const float* scale, float* y);

  at::Tensor x_, scale_, y_;  // y is contiguous and starts as zeros
  std::int64_t items_, width_;
};

// A cheat that parity and bench both look for: run() does nothing; outputs() does it all.
struct LateWork : RowScale {
  using RowScale::RowScale;
  void run() override { due_ = true; }
  NamedTensors outputs() override {
    if (due_) RowScale::run();
    due_ = false;
    return RowScale::outputs();
  }
  bool due_ = false;
};

// The optimized twin in fp32 and the baseline in fp64, where it is the oracle: in a baseline's place, a fast one.
class RowScaleOrOracle : public Runnable {
 public:
  RowScaleOrOracle(const NamedTensors& inputs, const Setting& setting);
  void run() override { chosen_->run(); }
  NamedTensors outputs() override { return chosen_->outputs(); }

 private:
  std::unique_ptr<Runnable> chosen_;
};

// The component with the given optimized twin: the baseline reads one scalar and makes four blocks a row.
// Case options: infinite_row, nan_row (that row's scale or x), magnitude (of scale), offset (of x).
Component row_scale_component(Factory optimized);

// x read once and y written once; the component declares none by itself.
Cost row_scale_cost(const Setting& setting);

// {items, width} with these options, fp32 on the CPU, named "selftest" as the component's only case.
Setting row_scale_setting(Component& component, std::int64_t items, std::int64_t width, Options options = {},
                          Pass pass = Pass::kForward);

// Baseline factories that twins of the baseline replace.
std::unique_ptr<Runnable> row_scale_baseline(const NamedTensors& inputs, const Setting& setting);

}  // namespace twinbench::selftest
