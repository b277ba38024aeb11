// What tests of the whole backward pass's kernels share: rows of a step on the tape, and the adjoints of its flows.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <vector>

#include "harness/simt/kernel_testing.h"
#include "kernels/energy_flow/flow_backward/arguments.h"

namespace twinbench::energy_flow::flow_backward {

namespace simt = kernels::simt;
using simt::Buffer;
using Integers = simt::GuardedBuffer<std::int32_t>;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

inline std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }

// Rows of a step and the adjoints of its flows. Slots of rows are in no order; children have those after them.
struct Taped {
  Taped(std::int32_t slots, std::int32_t rows) : count(slots), live(rows) {
    std::int32_t next = rows;
    std::vector<std::int32_t> slot(size(slots), 1 << 28), source = slot, requests = slot, first = slot, born = slot;
    for (std::int32_t row = 0; row < rows; ++row) {
      slot[size(row)] = rows - 1 - row;
      source[size(row)] = row % 5 == 3 ? flow_forward::kNoSource : (row * 7 + 1) % slots;
      requests[size(row)] = row % 4 == 1 ? 2 : 0;
      if (requests[size(row)] == 0) continue;
      first[size(row)] = next;
      born[size(row)] = std::min(2, slots - next);
      next += born[size(row)];
    }
    tape = {.total = integers({rows}),
            .slot = integers(slot),
            .source = integers(source),
            .x = floats(slots, 21),
            .y = floats(slots, 22),
            .z = floats(slots, 23),
            .energy = floats(slots, 24),
            .second_sums = floats(5 * slots, 25, 0.4f),
            .slope_x = floats(slots, 26),
            .slope_y = floats(slots, 27),
            .requests = integers(requests),
            .first_child = integers(first),
            .children = integers(born)};
    for (std::int32_t row = 0; row < rows; ++row)
      tape.slope_x[row] = static_cast<float>(row % 3 - 1), tape.slope_y[row] = row % 2 == 0 ? 1.0f : -1.0f;
    adjoints = {.x = floats(slots, 31), .y = floats(slots, 32), .z = floats(slots, 33), .energy = floats(slots, 34)};
  }

  float* floats(std::int64_t values, unsigned seed, float amplitude = 1.0f) {
    return all_floats.emplace_back(simt::spread(values, seed, amplitude), "values", 16).data();
  }
  // The bits of values in bf16, unguarded.
  std::uint16_t* halves(const float* values, std::int64_t count) {
    std::vector<std::uint16_t> bits(size(count));
    std::transform(values, values + count, bits.begin(), [](float x) { return kernels::bf16_bits(x); });
    return all_halves.emplace_back(bits, "stored", 8).data();
  }
  std::int32_t* integers(const std::vector<std::int32_t>& values) { return all_integers.emplace_back(values).data(); }

  // Over the children of a row's flow.
  template <class Value>
  double over_children(std::int32_t row, Value value) const {
    double sum = 0;
    if (tape.requests[row] == 0) return sum;
    for (std::int32_t i = 0; i < tape.children[row]; ++i) sum += value(tape.first_child[row] + i);
    return sum;
  }

  std::int32_t count, live;
  StepRows tape;
  Adjoints adjoints;
  std::deque<Buffer> all_floats;
  std::deque<simt::GuardedBuffer<std::uint16_t>> all_halves;
  std::deque<Integers> all_integers;
};

using Rows = std::array<std::int32_t, 2>;  // slots, rows
constexpr Rows kRows[] = {{1, 1}, {3, 0}, {40, 31}, {80, 65}, {150, 131}};

}  // namespace twinbench::energy_flow::flow_backward
