// A backward pass whose forward half runs by itself, so that a training step computes its forward pass once.
#pragma once

#include <vector>

#include "src/component.h"

namespace twinbench {

// An optimized variant that is set up for a backward case runs both passes in run(). One that derives from this also
// runs them one by one, with other calls between them: the caller copies kept() away after the first and back before
// the second, and gives the same inputs to both. It need not derive from it where computing the forward pass again
// costs less than keeping its values.
class TwoHalves : public Runnable {
 public:
  virtual void run_forward() = 0;
  virtual NamedTensors forward_outputs() = 0;  // of the last run_forward()
  // Buffers that run_forward() fills and run_backward() reads, beside the inputs; it may overwrite them. Their shapes
  // follow from the sizes alone.
  virtual std::vector<at::Tensor> kept() = 0;
  virtual void run_backward() = 0;
  // outputs() as the caller's own where that saves a copy: the next run_backward() writes into other memory.
  virtual NamedTensors give_outputs() { return outputs(); }
};

}  // namespace twinbench
