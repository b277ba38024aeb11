// Which elements of a right answer hang on a rounding that honest arithmetic may take either way.
#pragma once

#include <vector>

#include "src/registry.h"
#include "src/rounding.h"

namespace twinbench {

// While it lives, keeps every tensor that a baseline in fp64 rounds, as it was before, in order. One whose values fp32
// holds exactly (an input, a weight) is kept as an undefined tensor: no arithmetic has touched it.
class RoundingRecorder final : public RoundingObserver {
 public:
  at::Tensor observe(const at::Tensor& values, Dtype mode) override;
  std::vector<at::Tensor> log;
};

// One of the log's roundings.
struct OpenRounding {
  at::Tensor right, allowed;  // the oracle's value, in fp64, and how far honest arithmetic may be from it
  at::Tensor open;            // bool, likewise of the rounded tensor's shape; undefined where none is open
};
std::vector<OpenRounding> open_roundings(const Component& component, const Setting& setting,
                                         const NamedTensors& generated, const std::vector<at::Tensor>& log);

// For each of the oracle's outputs a bool tensor of its shape: true where an element is unsettled.
//
// An implementation rounds x + e where the oracle rounds x; e is the error of its fp32 arithmetic since the last
// rounding. A rounding is open where a boundary between two results lies within the e that is allowed: eight times the
// baseline's own RMSE there, and two units in the last place. All others come out alike in every implementation, and
// the error ends with them. So, by induction along the computation, an element behind which no rounding is open has
// the error of the arithmetic after its last roundings and no other. The others are unsettled, and whatever one open
// rounding moves further down, more roundings included, lies behind it too.
//
// How it is found: the baseline runs in the mode itself, on the CPU, with every rounding replaced by the oracle's and
// moved by up to fp32's last place (trials.h), so that what it is about to round differs from the log by such an e, and
// by some e even where its own sums happen to be exact. Then the oracle runs again with NaN for every value
// whose rounding is open: what comes out another way is unsettled.
// open_roundings() throws kInternal where the baseline rounds other tensors in fp64 than in the mode.
NamedTensors unsettled_elements(const Component& component, const Setting& setting, const NamedTensors& generated,
                                const NamedTensors& oracle, const std::vector<OpenRounding>& roundings);

}  // namespace twinbench
