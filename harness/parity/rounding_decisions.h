// Which elements of a right answer hang on a rounding, or a decision, that honest arithmetic may take either way.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/registry.h"
#include "src/rounding.h"

namespace twinbench {

// What a baseline in fp64 rounds and decides, in order.
struct RoundingLog {
  // As they were before. One whose values fp32 holds exactly (an input, a weight) is an undefined tensor: no arithmetic
  // has touched it.
  std::vector<at::Tensor> operands;
  std::vector<std::int64_t> decisions;
  bool any_close = false;  // whether rounding may take one of the decisions
};

// Of a decision in a mode that rounds, in the unit of the specification's bound (energy flow 0.5).
constexpr double kCloseDecision = 1e-2;

// While it lives, keeps what a baseline rounds and decides. `whole`: every operand as it is.
class RoundingRecorder final : public RoundingObserver {
 public:
  explicit RoundingRecorder(bool whole = false) : whole_(whole) {}
  at::Tensor observe(const at::Tensor& values, Dtype mode) override;
  std::int64_t decide(std::int64_t computed, std::int64_t other, double margin) override;
  RoundingLog log;

 private:
  const bool whole_;
};

// Decides as the log says, so that a run goes the oracle's way, and rounds the same tensors, whatever its values.
class OraclesDecisions : public RoundingObserver {
 public:
  explicit OraclesDecisions(const std::vector<std::int64_t>& decisions) : decisions_(decisions) {}
  std::int64_t decide(std::int64_t computed, std::int64_t other, double margin) override;

 private:
  const std::vector<std::int64_t>& decisions_;
  std::size_t next_ = 0;
};

// One of the log's roundings.
struct OpenRounding {
  at::Tensor right, allowed;  // the oracle's value, in fp64, and how far honest arithmetic may be from it
  at::Tensor open;            // bool, likewise of the rounded tensor's shape; undefined where none is open
};
std::vector<OpenRounding> open_roundings(const Component& component, const Setting& setting,
                                         const NamedTensors& generated, const RoundingLog& log);

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
// All of these runs decide as the oracle did.
// open_roundings() throws kInternal where the baseline rounds other tensors in fp64 than in the mode.
NamedTensors unsettled_elements(const Component& component, const Setting& setting, const NamedTensors& generated,
                                const NamedTensors& oracle, const std::vector<OpenRounding>& roundings,
                                const RoundingLog& log);

// Likewise in `elements`: true where an element is tainted, which is to say that it may come out otherwise, by any
// amount, because a decision closer than kCloseDecision goes the other way. Nothing where no decision is close.
//
// How it is found: the oracle runs again with every close decision gone the other way, those that it meets on the new
// way included, then kOtherWays times (where there are gradients, or sums over all items alone, which are bounded with
// room, once) with each of them as a coin falls; what comes out another way is tainted. So a flow's other fates are
// lived through, and whatever they change, children and neighbours included, is seen to change.
constexpr std::uint64_t kOtherWays = 3;
struct Moved {
  double distance = 0, largest = 0;  // L2 and of one element; infinite where other elements are finite
};
struct Tainted {
  NamedTensors elements;
  std::map<std::string, Moved> moved;  // by output: how far the farthest of these runs is from the oracle
};
Tainted tainted_by_decisions(const Component& component, const Setting& setting, const NamedTensors& generated,
                             const NamedTensors& oracle, const RoundingLog& log);
// The same of whatever `run` gives, which decides as it is told and whose right answer is known.
Tainted tainted_by_decisions(const std::function<NamedTensors()>& run, const NamedTensors& right, std::uint64_t coins);

// Of a sum over all items, as a parameter's gradient or a window's loss is, every element is tainted where one item is.
// Where close decisions move it little (a gradient by a tenth of its norm, anything else by as much as its class allows
// in the mode) it is compared all the same, by a bound that is wider by twice the farthest of the runs that try them.
// Returns the specification with that bound; nothing where they move it farther, and it cannot be compared.
bool sums_items(const OutputSpec& spec);
std::optional<OutputSpec> widened(const OutputSpec& spec, const at::Tensor& oracle, const Moved& moved, Dtype dtype);

}  // namespace twinbench
