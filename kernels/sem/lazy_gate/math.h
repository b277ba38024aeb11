// Arithmetic of sem.lazy_gate's solver (C05) and gate (C07), shared by host and device: one row's scalars from step to
// step, and whether an entry of the cache is looked at.
#pragma once

#include <cstdint>

#include "src/common/host_device.h"

namespace twinbench::sem::lazy_gate {

constexpr float kZeroRow = 1e-30f;  // squared norm below which a right side counts as zero

// How far a row of the solver has come. Squares are sums over the row.
struct RowState {
  float whole = 0;   // ||b||^2
  float rho = 0;     // ||r||^2
  float length = 0;  // alpha, of the step along p; 0 once the row is through
  int iterations = 0;
  bool skipped = false, discarded = false;  // the cached solution is taken; it was farther off than zeros
  bool bad = false;                         // a NaN or an infinity is in it

  TWINBENCH_HOST_DEVICE bool active() const { return length != 0; }
};

struct StopRule {
  float tolerance = 0;       // relative residual
  float gate_tolerance = 0;  // of a cached solution; 0: there is no gate
  int most_iterations = 0;
};

// What the cache holds, or what a call is: of which micro-batch, by which parameters.
struct Key {
  std::int64_t batch, version;
};
TWINBENCH_HOST_DEVICE bool evaluates(bool keyed, bool valid, const Key& entry, const Key& call) {
  return valid && (!keyed || (entry.batch == call.batch && entry.version == call.version));
}

TWINBENCH_HOST_DEVICE bool is_finite(float value) { return value - value == 0; }

// From which vector a row starts.
enum class Start { kZero, kEntry, kNowhere };

// whole: ||b||^2; from_entry: ||b - A x0||^2. A skip, or nothing to solve: kNowhere.
TWINBENCH_HOST_DEVICE Start begin(RowState& row, const StopRule& rule, float whole, float from_entry) {
  row = {};
  row.whole = row.rho = whole;
  if (!is_finite(whole)) {
    row.bad = true;
    return Start::kNowhere;
  }
  const bool gate = rule.gate_tolerance > 0;
  if (whole < kZeroRow) {  // an entry that is not zero must not outlive it
    row.rho = 0;
    row.skipped = gate && from_entry < kZeroRow;
    row.discarded = gate && !row.skipped;
    return Start::kNowhere;
  }
  if (gate && from_entry < rule.gate_tolerance * rule.gate_tolerance * whole) {
    row.rho = from_entry;
    row.skipped = true;
    return Start::kNowhere;
  }
  if (rule.most_iterations > 0) row.length = 1;
  const bool warm = gate && from_entry < whole;
  if (warm) row.rho = from_entry;
  row.discarded = gate && !warm;
  return warm ? Start::kEntry : Start::kZero;
}

// After a step, by the new ||r||^2: the share of p that the next direction keeps, with the sign that a skew matrix
// wants, p = r - t p.
TWINBENCH_HOST_DEVICE float go_on(RowState& row, const StopRule& rule, float rho) {
  ++row.iterations;
  const float share = rho / row.rho;
  row.rho = rho;
  if (!is_finite(rho)) row.bad = true;
  if (row.bad || rho <= rule.tolerance * rule.tolerance * row.whole || row.iterations >= rule.most_iterations)
    row.length = 0;
  else
    row.length = 1 / (1 + share / row.length);
  return share;
}

// Of a row that is through: the share of the right side that is left, squared.
TWINBENCH_HOST_DEVICE float left_over(const RowState& row) { return row.rho > 0 ? row.rho / row.whole : 0.0f; }
TWINBENCH_HOST_DEVICE bool is_unconverged(const RowState& row, const StopRule& rule) {
  return !row.bad && !row.skipped && left_over(row) > rule.tolerance * rule.tolerance;
}

// What is counted of a call, in this order.
enum Count : int {
  kNonfiniteRows,
  kSkipped,          // 1: all rows were
  kGateEvaluations,  // 1: an entry was looked at
  kIterations,       // of the row that took most
  kAdjointIterations,
  kRowIterations,  // of all rows together
  kDiscardedRows,
  kUnconvergedRows,
  kCounts
};

}  // namespace twinbench::sem::lazy_gate
