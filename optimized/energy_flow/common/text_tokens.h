// A batch of texts as token rows, read anew by every run: on the CPU without padding, on a card padded, so that nothing
// need be known to the host.
#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/energy_flow/common/encoder_rows.h"
#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

class TextTokens {
 public:
  TextTokens(const NamedTensors& inputs, const Setting& setting);

  // The inputs, as they are now.
  void read();
  TokenRows rows() const;
  std::int64_t count() const { return count_; }        // rows of this run
  std::int64_t capacity() const { return capacity_; }  // of any run

 private:
  const bool packed_;
  const std::int64_t texts_, most_, capacity_;
  std::int64_t count_;
  at::Tensor token_, length_;                 // the inputs
  at::Tensor id_, place_, text_, first_row_;  // int32
};

}  // namespace twinbench::energy_flow
