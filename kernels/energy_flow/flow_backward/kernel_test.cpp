// energy_flow.flow_backward's kernels that leave the tape, begin the way back and end it, on the host executor in every
// thread order: each against plain loops, or against the whole forward's own.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/energy_flow/flow_backward/kernel.h"
#include "kernels/energy_flow/flow_backward/kernel_testing.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

// Flows of two samples, all live, and what a step needs of them.
struct Lattice : Taped {
  explicit Lattice(std::int32_t each) : Taped(2 * each, 2 * each) {
    const std::int32_t slots = 2 * each;
    a.slots = {.samples = 2, .each = each};
    a.width = 5, a.height = 4, a.placed = std::min(each, 20);
    a.stop = {.max_steps = 9, .convergence = false};
    a.flows = {.x = floats(slots, 41),
               .y = floats(slots, 42),
               .z = floats(slots, 43, 0.9f),
               .energy = floats(slots, 44),
               .distance = floats(slots, 45)};
    a.flows.age = integers(std::vector<std::int32_t>(size(slots), 1));
    a.flows.status = status.emplace_back(std::vector<std::uint8_t>(size(slots), 1)).data();
    a.rows = {.slot = tape.slot, .source = tape.source};
    a.next = {.slot = integers(std::vector<std::int32_t>(size(slots))),
              .source = integers(std::vector<std::int32_t>(size(slots)))};
    a.results = {.x = floats(slots, 46),
                 .y = floats(slots, 47),
                 .z = floats(slots, 48),
                 .child_energy = floats(slots, 49),
                 .margin = floats(slots, 50),
                 .outcome = integers(std::vector<std::int32_t>(size(slots))),
                 .requests = tape.requests};
    for (std::int32_t** field : {&a.begin, &a.live, &a.next_live})
      *field = integers({0, field == &a.begin ? each / 2 : each - each / 2});
    a.live[0] = each / 2;
    a.total = integers({each});
    a.stats = integers(std::vector<std::int32_t>(size(2 * flow_forward::kStatistics), each - 5));
    a.margin = floats(2, 51);
    a.sample_key = keys.emplace_back(std::vector<std::int64_t>{3, 8}).data();
  }

  flow_forward::Arguments a;
  std::deque<simt::GuardedBuffer<std::uint8_t>> status;
  std::deque<simt::GuardedBuffer<std::int64_t>> keys;
};

template <class Kernel>
void finish_taped(std::int32_t energy, std::int32_t head) {
  constexpr std::int32_t kEach = 37;
  for (const auto order : simt::kAllOrders) {
    Lattice l(kEach), plain(kEach);
    const std::int32_t all = (energy + head + 7) / 8 * 8;
    for (Lattice* of : {&l, &plain}) {
      of->a.heads.columns = {energy, head, all};
      of->a.heads.rule = {.scale = 3, .threshold = 0.2f, .most = 2};
      of->a.heads.sums = of->floats(2 * kEach * all, 1, 2), of->a.heads.bias = of->floats(all, 2);
      of->a.heads.energy_out_weight = of->floats(energy, 3);
      of->a.heads.displacement_out_weight = of->floats(3 * head, 4);
      of->a.heads.gate_out_weight = of->floats(head, 5), of->a.heads.out_bias = of->floats(5, 6);
    }
    const std::int64_t shared = carrier_heads::forward_shared_bytes(l.a.heads.columns, false);
    l.a.slots.samples = 1;  // a pass of fewer than the tape has room for, whose rows lie apart all the same
    simt::run_clean(Kernel{}, 1, carrier_heads::kHeadThreads, order,
                    TapedArguments{.forward = l.a, .tape = l.tape, .slots = 2 * kEach}, shared);
    int folded = 0;
    for (std::int32_t row = 0; row < kEach; ++row) {
      const std::int32_t slot = l.tape.slot[row];
      const flow_forward::SlotFields& was = plain.a.flows;
      ASSERT_EQ(l.tape.x[row], was.x[slot]) << row;
      ASSERT_EQ(l.tape.y[row], was.y[slot]) << row;
      ASSERT_EQ(l.tape.z[row], was.z[slot]) << row;
      ASSERT_EQ(l.tape.energy[row], was.energy[slot]) << row;
      const auto sum = [&](int i) { return l.tape.second_sums[i * 2 * kEach + row]; };
      ASSERT_EQ(kernels::tanh(sum(0)), l.a.flows.energy[slot]) << row;
      const float x = was.x[slot] + carrier_heads::clamp_half(3 * sum(1)),
                  y = was.y[slot] + carrier_heads::clamp_half(3 * sum(2));
      ASSERT_EQ(flow_movement::reflected(x), l.a.flows.x[slot]) << row;
      ASSERT_EQ(flow_movement::reflected(y), l.a.flows.y[slot]) << row;
      ASSERT_EQ(flow_movement::reflected_slope(x), l.tape.slope_x[row]) << row;
      ASSERT_EQ(flow_movement::reflected_slope(y), l.tape.slope_y[row]) << row;
      folded += l.tape.slope_x[row] < 0;
    }
    EXPECT_GT(folded, 2);
  }
}
TEST(TapeKernels, FinishLeavesWhatWasBefore) {
  finish_taped<FinishTaped>(8, 12);
  finish_taped<FinishTapedAnyWidth>(3, 6);
}

TEST(TapeKernels, SettleLeavesWhoseChildrenAreWhere) {
  constexpr std::int32_t kEach = 60;
  for (const auto order : simt::kAllOrders) {
    Lattice l(kEach);
    for (std::int32_t row = 0; row < kEach; ++row) l.a.results.requests[row] = row % 3 == 0 ? 1 + row % 2 : 0;
    simt::run_clean(SettleTaped{}, 2, flow_forward::kSampleThreads, order,
                    TapedArguments{.forward = l.a, .tape = l.tape, .slots = 2 * kEach});
    for (std::int32_t b = 0; b < 2; ++b) {
      const std::int32_t first = b * kEach, begin = l.a.begin[b], rows = l.a.live[b];
      std::int32_t at = first + rows, created = first + kEach - 5;  // of the next step's list; of the slots
      for (std::int32_t row = begin; row < begin + rows; ++row) {
        if (l.a.results.requests[row] == 0) continue;
        const std::int32_t children = std::min(l.a.results.requests[row], first + kEach - created);
        ASSERT_EQ(l.tape.children[row], children) << row;
        for (std::int32_t i = 0; i < children; ++i, ++at) {
          ASSERT_EQ(l.tape.first_child[row] + i, created++) << row;
          ASSERT_EQ(l.a.next.slot[at], l.tape.first_child[row] + i) << row;
          ASSERT_EQ(l.a.next.source[at], row);
        }
      }
      EXPECT_EQ(created, first + kEach) << "the quota was reached";
    }
  }
}

// rounds: states, which are read and left in bf16. tf32: operands of the products.
template <class Kernel>
void gates_are_left(Kernel kernel, bool rounds, bool tf32) {
  const auto operand = [tf32](float x) { return tf32 ? kernels::float_of_bits(simt::tf32_bits(x)) : x; };
  for (const auto& [slots, live] : kRows)
    for (const bool stores : {true, false})
      for (const auto order : simt::kAllOrders) {
        Taped t(slots, live);
        constexpr std::int32_t kStride = 16, kInner = 32;
        GatesArguments a{.gates = t.floats(slots * 4 * kStride, 1)};
        float* const out = t.floats(slots * kStride, 2);
        a.tile = {.total = t.tape.total,
                  .rows = slots,
                  .input = t.floats(slots * kStride, 3),
                  .state = t.floats(slots * kStride, 4),
                  .input_stride = kStride,
                  .stride = kStride,
                  .source = t.tape.source,
                  .weights = t.floats(kInner * 96, 5, 0.4f),
                  .biases = t.floats(4 * 32, 6),
                  .out = stores ? out : nullptr};
        if (rounds) {
          a.tile.stored = t.halves(a.tile.state, slots * kStride);
          a.tile.out_stored = stores ? t.halves(out, slots * kStride) : nullptr;
        }
        simt::run_clean(kernel, (slots + 63) / 64, flow_forward::kTileThreads, order, a, flow_forward::kTileBytes);
        for (std::int32_t row = 0; row < live; ++row)
          for (std::int32_t c = 0; c < kStride; ++c) {
            const std::int32_t source = t.tape.source[row];
            double sums[4];
            for (int i = 0; i < 4; ++i) sums[i] = a.tile.biases[i * 32 + c];
            for (int gate = 0; gate < 3; ++gate)
              for (std::int32_t k = 0; k < kInner; ++k) {
                const double weight = operand(a.tile.weights[k * 96 + gate * 32 + c]);
                const bool input = k < kStride;
                if (!input && source < 0) continue;
                sums[gate + (gate == 2 && !input)] +=
                    weight * operand(input ? a.tile.input[row * kStride + k]
                                           : kernels::operand(a.tile.state[source * kStride + k - kStride], rounds));
              }
            const double before = source < 0 ? 0 : kernels::operand(a.tile.state[source * kStride + c], rounds);
            const auto due = energy_carrier::gru_channel(sums[0], sums[1], sums[2], sums[3], before);
            const double wanted[] = {due.reset, due.update, due.candidate, sums[3]};
            for (int i = 0; i < 4; ++i)
              ASSERT_NEAR(a.gates[(4 * row + i) * kStride + c], wanted[i], 2e-5) << row << ' ' << c << ' ' << i;
            if (stores) {
              ASSERT_NEAR(out[row * kStride + c], due.next, 2e-5) << row << ' ' << c;
              if (rounds) {
                ASSERT_EQ(a.tile.out_stored[row * kStride + c], kernels::bf16_bits(out[row * kStride + c]));
              }
            }
          }
      }
}

TEST(TapeKernels, GatesAreLeftWithAndWithoutTheState) { gates_are_left(GatesTaped{}, false, false); }
TEST(TapeKernels, GatesOfStoredStates) { gates_are_left(StoredGatesTaped{}, true, false); }
TEST(TapeKernels, GatesByTensorCores) { gates_are_left(GatesTapedTf32{}, false, true); }
TEST(TapeKernels, GatesOfStoredStatesByTensorCores) { gates_are_left(StoredGatesTapedTf32{}, true, true); }

// A cell's gradient goes to its flows by their shares (decision 16); what is in no cell has none.
TEST(EndKernels, SurfacesGiveGradientsToDoneFlows) {
  constexpr std::int32_t kEach = 41;
  for (const auto order : simt::kAllOrders) {
    Lattice l(kEach);
    const flow_forward::Arguments& a = l.a;
    for (std::int32_t slot = 0; slot < 2 * kEach; ++slot) {
      a.flows.distance[slot] = std::abs(a.flows.distance[slot]), a.flows.age[slot] = slot % 7;
      a.flows.status[slot] = static_cast<std::uint8_t>(slot % 5 == 4 ? flow_movement::kDead : 2 + slot % 2);
    }
    const float* const surface = l.floats(2 * a.cells(), 7);
    const std::int64_t padded = 84;
    float* const gradient = l.floats(padded, 8);
    simt::run_clean(ClearAdjoints{}, 1, kernels::kElementThreads, order,
                    ClearArguments{.all = gradient, .count = padded});
    simt::run_clean(UncollectSurfaces{}, 2, surface_collection::kCollectThreads, order,
                    UncollectArguments{.forward = a, .grad_surface = surface, .grad_energy = gradient},
                    std::int64_t{surface_collection::kBytesOfCell} * a.cells());
    const auto cell = [&](std::int32_t slot) {
      return slot / kEach * a.cells() + surface_collection::cell_along(a.flows.y[slot], a.height) * a.width +
             surface_collection::cell_along(a.flows.x[slot], a.width);
    };
    // Only numbers below what the sample has created are flows.
    const auto done = [&](std::int32_t slot) { return slot % 5 != 4 && slot % kEach < kEach - 5; };
    const auto factor = [&](std::int32_t slot) {
      return (1 + 0.1 * a.flows.age[slot]) / (1 + double{a.flows.distance[slot]});
    };
    for (std::int32_t slot = 0; slot < 2 * kEach; ++slot) {
      double shares = 0, energies = 0;
      for (std::int32_t other = 0; other < 2 * kEach; ++other)
        if (done(other) && cell(other) == cell(slot)) {
          const double share = std::exp(std::abs(double{a.flows.energy[other]}) * factor(other));
          shares += share, energies += share * a.flows.energy[other];
        }
      const double energy = a.flows.energy[slot], mean = energies / shares,
                   share = std::exp(std::abs(energy) * factor(slot)) / shares;
      const double due = surface[cell(slot)] * share * (1 + (energy > 0 ? 1 : -1) * factor(slot) * (energy - mean));
      ASSERT_NEAR(gradient[slot], done(slot) ? due : 0, 1e-5) << slot;
    }
    ASSERT_EQ(gradient[padded - 1], 0);
    // What is returned: of the flows that were placed.
    float* const start = l.floats(2 * a.cells(), 9);
    const float last = start[2 * a.cells() - 1];
    simt::GuardedBuffer<std::int64_t> bytes(std::vector<std::int64_t>(4, -1));
    simt::run_clean(ReturnEnergies{}, {1, 2, 1}, kernels::kElementThreads, order,
                    ReturnArguments{.slots = a.slots,
                                    .placed = 19,
                                    .cells = a.cells(),
                                    .adjoint = gradient,
                                    .grad_energy = start,
                                    .totals = l.integers({7, 300, 5, 11}),
                                    .steps = 3,
                                    .every = 2,
                                    .bytes = {.of_record = 1, .of_start = 10, .of_step = 100},
                                    .tape_bytes = bytes.data()});
    for (std::int32_t i = 0; i < 38; ++i)
      ASSERT_EQ(start[i / 19 * a.cells() + i % 19], gradient[i / 19 * kEach + i % 19]) << i;
    EXPECT_EQ(start[2 * a.cells() - 1], last);
    // Of 312 rows, 12 of them at starts: the last segment's, and the largest one's. Two of three steps came again.
    EXPECT_EQ(bytes[0], 312 + 120 + 500);
    EXPECT_EQ(bytes[1], 0);
    EXPECT_EQ(bytes[2], 312 + 120 + 30700);
    EXPECT_EQ(bytes[3], 5);
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_backward
