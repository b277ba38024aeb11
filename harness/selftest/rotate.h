// The stateful, complex component of the selftest: n steps of field = field * turn + drive, and what they leave.
#pragma once

#include <complex>

#include "harness/selftest/row_scale.h"

namespace twinbench::selftest {

// The optimized twin: its own copy of the state, one loop, nothing allocated after setup. Wrong twins override a part.
class Rotate : public Runnable {
 public:
  using Number = std::complex<float>;
  // State: field complex64 [items, width], age int64 [1]. Data: turn complex64 [items], drive fp32 planes
  // [2, items, width], limit fp64 [items]. Throws kOutOfRange for a negative age where it checks.
  Rotate(const NamedTensors& inputs, const Setting& setting, bool checks = true);
  void run() override;
  void reset() override;
  NamedTensors outputs() override;

 protected:
  // All steps of one element, whose flat index is i.
  virtual void advance(Number& field, Number turn, Number drive, std::int64_t i);

  at::Tensor given_field_, given_age_, turn_, drive_, limit_;
  at::Tensor field_, age_, planes_, energy_, seconds_;
  std::int64_t items_, width_, steps_;
  bool blocked_;
};

// The component with that optimized twin. Options: wrong_sign (the baseline subtracts the drive: the documented
// mistake), blocked (columns in two blocks, which changes no bit). The baseline adds twice a step.
Component rotate_component(Factory optimized);
// 5 items, 7 columns, 3 steps in fp32 on the CPU, named "selftest" as the component's only case.
Setting rotate_setting(Component& component, Options options = {}, Pass pass = Pass::kForward);

std::unique_ptr<Runnable> rotate_baseline(const NamedTensors& inputs, const Setting& setting);
std::unique_ptr<Runnable> rotate_backward(const NamedTensors& inputs, const Setting& setting);  // optimized

}  // namespace twinbench::selftest
