// A runnable whose run is steps from a state: they can be taken one by one, each from a state that somebody gives.
#pragma once

#include "src/named_tensors.h"

namespace twinbench {

// What teacher forcing asks of a variant: the steps are those of run(), taken by the same code. A Runnable derives from
// it beside Runnable; outputs() then tells what the steps up to now have come to.
class Stepwise {
 public:
  virtual ~Stepwise() = default;
  virtual void begin() = 0;  // the state before the first step
  virtual void step() = 0;   // one from the present state; nothing changes any more where the run is over
  // All that decides how the run goes on, as copies on the host. Every variant names, shapes and orders it alike.
  virtual NamedTensors state() = 0;
  // All of it, in whatever floating dtype another variant has it.
  virtual void set_state(const NamedTensors& state) = 0;
};

}  // namespace twinbench
