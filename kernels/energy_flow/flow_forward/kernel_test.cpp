// energy_flow.flow_forward's kernels on the host executor in every thread order: each against plain loops over lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "harness/simt/kernel_testing.h"
#include "kernels/energy_flow/common/neuron_tile.h"
#include "kernels/energy_flow/flow_forward/kernel.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

using simt::Buffer;
using Integers = simt::GuardedBuffer<std::int32_t>;
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::size_t size(std::int64_t count) { return static_cast<std::size_t>(count); }
std::uint32_t& random_state() {
  static std::uint32_t state = 11;
  return state;
}
std::int32_t below(std::int32_t bound) {
  random_state() = random_state() * 1664525u + 1013904223u;
  return static_cast<std::int32_t>((random_state() >> 8) % static_cast<std::uint32_t>(bound));
}

Buffer wide(const simt::Floats& values) { return Buffer(values, "values", 16); }

// ---- samples ----------------------------------------------------------------------------------------------------

// Everything the kernels share, filled with what an earlier pass has left.
struct Lattice {
  Lattice(std::int64_t samples, std::int32_t quota, std::int32_t width, std::int32_t height, std::int32_t max_steps)
      : status(size(samples * quota)), keys(size(samples)) {
    a.slots = {.samples = samples, .each = quota};
    a.width = width, a.height = height;
    a.placed = std::min(quota, a.cells());
    a.stop = {.max_steps = max_steps, .convergence = false};
    a.movement = {.projection_age = 3};
    a.pass = 5;
    const std::int64_t slots = a.slots.all();
    for (float** field : {&a.flows.x, &a.flows.y, &a.flows.z, &a.flows.energy, &a.flows.distance, &a.results.x,
                          &a.results.y, &a.results.z, &a.results.child_energy, &a.results.margin})
      *field = floats(slots);
    for (std::int32_t** field : {&a.flows.age, &a.rows.slot, &a.rows.source, &a.next.slot, &a.next.source,
                                 &a.results.outcome, &a.results.requests})
      *field = integers(slots, 1 << 28);
    for (std::int32_t** field : {&a.begin, &a.live, &a.next_live, &a.ending, &a.states.best, &a.states.stall,
                                 &a.states.steps, &a.states.reason})
      *field = integers(samples, 77);
    std::fill(status.begin(), status.end(), std::uint8_t{flow_movement::kDoneZ0});
    a.flows.status = status.data();
    a.total = integers(1, 9);
    a.all_finished = integers(1, 4);
    a.stats = integers(samples * kStatistics, 1000);
    a.active = integers(samples * max_steps, 99);
    a.margin = floats(samples);
    a.surface = floats(samples * a.cells());
    a.energies = all_floats.emplace_back(simt::spread(samples * a.cells(), 1)).data();
    for (std::int64_t b = 0; b < samples; ++b) keys[size(b)] = 1000 + 7 * b;
    a.sample_key = keys.data();
  }

  float* floats(std::int64_t count) {
    return all_floats.emplace_back(simt::Floats(size(count), 0.5f), "values", 16).data();
  }
  std::int32_t* integers(std::int64_t count, std::int32_t value) {
    return all_integers.emplace_back(std::vector<std::int32_t>(size(count), value)).data();
  }
  void place(simt::Order order) {
    const simt::Index3 grid = kernels::row_pieces(a.slots.samples, std::max(a.placed, 1), kSampleThreads);
    simt::run_clean(PlaceFlows{}, {grid.x, grid.y, 1}, kSampleThreads, order, a);
  }
  void look(std::int32_t step, simt::Order order) {
    a.step = step;
    simt::run_clean(LookAtSamples{}, 1, kSampleThreads, order, a);
    simt::run_clean(ListFlows{}, static_cast<unsigned>(a.slots.samples), kSampleThreads, order, a);
  }
  void settle(simt::Order order) {
    simt::run_clean(SettleSamples{}, static_cast<unsigned>(a.slots.samples), kSampleThreads, order, a);
  }

  Arguments a;
  std::deque<Buffer> all_floats;
  std::deque<Integers> all_integers;
  simt::GuardedBuffer<std::uint8_t> status;
  simt::GuardedBuffer<std::int64_t> keys;
};

using Extent = std::array<std::int32_t, 4>;  // samples, quota, width, height
class Samples : public testing::TestWithParam<Extent> {};

// Steps with any outcomes and requests, against lists of slots: order, numbers, quota, counts, margins, children.
TEST_P(Samples, StepsEndAsListsDo) {
  const auto [samples, quota, width, height] = GetParam();
  constexpr std::int32_t kMost = 5;
  for (const auto order : simt::kAllOrders) {
    Lattice l(samples, quota, width, height, kMost);
    const Arguments& a = l.a;
    l.place(order);
    for (std::int32_t slot = a.slots.first(samples - 1), cell = 0; cell < a.placed; ++slot, ++cell) {
      ASSERT_EQ(a.flows.x[slot], flow_placement::normalized(cell % width, width - 1));
      ASSERT_EQ(a.flows.y[slot], flow_placement::normalized(cell / width, height - 1));
      ASSERT_EQ(a.flows.energy[slot], a.energies[(samples - 1) * a.cells() + cell]);
    }
    struct Entry {
      std::int32_t slot, source;
    };
    std::vector<std::vector<Entry>> due(size(samples));
    std::vector<std::vector<std::int32_t>> counts(size(samples), std::vector<std::int32_t>(size(kStatistics)));
    std::vector<float> margin(size(samples), 1.0f);
    for (std::int64_t b = 0; b < samples; ++b) {
      for (std::int32_t i = 0; i < a.placed; ++i) due[size(b)].push_back({a.slots.first(b) + i, kNoSource});
      counts[size(b)][kCreated] = a.placed, counts[size(b)][kDroppedInitial] = a.cells() - a.placed;
    }
    for (std::int32_t step = 0; step <= kMost; ++step) {
      l.look(step, order);
      std::int32_t row = 0;
      for (std::int64_t b = 0; b < samples; ++b) {
        auto& flows = due[size(b)];
        auto& own = counts[size(b)];
        const bool going = own[kReason] == 0 && !flows.empty() && step < kMost;
        if (own[kReason] == 0 && !going) {
          own[kSteps] = step, own[kReason] = flows.empty() ? 1 : 2;
          own[flow_movement::kProjectedAtStop] += static_cast<std::int32_t>(flows.size());
          for (const Entry& entry : flows) {
            ASSERT_TRUE(is_done(a.flows.status[entry.slot])) << b;
            ASSERT_FLOAT_EQ(a.flows.distance[entry.slot], 1 - std::abs(a.flows.z[entry.slot]));
          }
        }
        if (!going) flows.clear();
        if (step < kMost) {
          ASSERT_EQ(a.active[b * kMost + step], static_cast<std::int32_t>(flows.size())) << b;
        }
        ASSERT_EQ(a.begin[b], row);
        for (const Entry& entry : flows) {
          ASSERT_EQ(a.rows.slot[row], entry.slot) << b << " step " << step;
          ASSERT_EQ(a.rows.source[row], entry.source) << b << " step " << step;
          a.results.outcome[row] = below(3) > 0 ? flow_movement::kStaysActive : 1 + below(7);
          a.results.requests[row] =
              a.results.outcome[row] == flow_movement::kStaysActive ? std::max(0, below(6) - 2) : 0;
          a.results.margin[row] = static_cast<float>(1 + below(1000)) / 1000;
          a.results.x[row] = static_cast<float>(row), a.results.y[row] = static_cast<float>(step);
          a.results.z[row] = 0.25f, a.results.child_energy[row] = static_cast<float>(-row);
          a.flows.status[entry.slot] = a.results.outcome[row] == 0 ? 1 : 4;
          ++row;
        }
      }
      ASSERT_EQ(*a.total, row);
      ASSERT_EQ(*a.all_finished, row == 0 ? 5 : 4);
      l.settle(order);
      row = 0;
      for (std::int64_t b = 0; b < samples; ++b) {
        auto& own = counts[size(b)];
        std::vector<Entry> stay, born;
        for (std::size_t i = 0; i < due[size(b)].size(); ++i, ++row) {
          const std::int32_t outcome = a.results.outcome[row];
          margin[size(b)] = std::min(margin[size(b)], a.results.margin[row]);
          if (outcome == flow_movement::kStaysActive)
            stay.push_back({due[size(b)][i].slot, row});
          else
            ++own[size(outcome)];
          for (std::int32_t child = 0; child < a.results.requests[row]; ++child) {
            ++own[kRequests];
            if (own[kCreated] == quota) {
              ++own[kDroppedSpawn];
              continue;
            }
            const std::int32_t slot = a.slots.first(b) + own[kCreated]++;
            born.push_back({slot, row});
            const float got[] = {a.flows.x[slot], a.flows.y[slot], a.flows.z[slot], a.flows.energy[slot]};
            const float want[] = {static_cast<float>(row), static_cast<float>(step), 0.25f, static_cast<float>(-row)};
            for (int field = 0; field < 4; ++field) ASSERT_EQ(got[field], want[field]) << b << ' ' << field;
            ASSERT_EQ(a.flows.age[slot], 0);
            ASSERT_EQ(a.flows.status[slot], flow_movement::kActive);
          }
        }
        stay.insert(stay.end(), born.begin(), born.end());
        due[size(b)] = stay;
        for (std::int32_t column = 0; column < kStatistics; ++column)
          ASSERT_EQ(a.stats_of(b)[column], own[size(column)]) << b << " column " << column << " step " << step;
        if (own[kReason] == 0) {
          ASSERT_EQ(a.margin[b], margin[size(b)]) << b;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Extents, Samples,
                         testing::Values(Extent{1, 6, 2, 2}, Extent{3, 40, 5, 4}, Extent{2, 700, 17, 16},
                                         Extent{5, 3, 3, 3}, Extent{300, 4, 2, 2}));

// ---- rows -------------------------------------------------------------------------------------------------------

// Live flows here and there among the slots of two samples.
struct Listed : Lattice {
  explicit Listed(std::int32_t each) : Lattice(2, each, 5, 4, 9) {
    const simt::Floats values = simt::spread(4 * a.slots.all(), 6);
    for (std::int64_t slot = 0; slot < a.slots.all(); ++slot) {
      a.flows.x[slot] = values[size(4 * slot)], a.flows.y[slot] = values[size(4 * slot + 1)];
      a.flows.z[slot] = 0.9f * values[size(4 * slot + 2)], a.flows.energy[slot] = values[size(4 * slot + 3)];
      a.flows.age[slot] = static_cast<std::int32_t>(slot % 3);
      if (slot % 3 != 1) a.rows.slot[rows++] = static_cast<std::int32_t>(slot);
    }
    *a.total = rows;
  }
  std::int32_t rows = 0;
};

template <class Kernel>
void neuron_as_on_the_host(Kernel kernel, bool round) {
  for (const std::int32_t each : {1, 8, 37})
    for (const auto order : simt::kAllOrders) {
      Listed l(each);
      Arguments& a = l.a;
      a.neuron = {9, 7};
      a.input_stride = 16;
      a.flows.energy[a.rows.slot[0]] = kNaN;
      const Buffer weights = wide(simt::spread(a.neuron.total(), 8)),
                   input = wide(simt::Floats(size(32 * each), -7.0f));
      a.neuron_weights = weights.data();
      a.input = input.data();
      simt::run_clean(kernel, each > 8 ? 2 : 1, simple_neuron::kNeuronThreads, order, a,
                      simple_neuron::forward_shared_bytes(a.neuron));
      std::vector<float> memory(size(simple_neuron::Tile<1>::size(a.neuron)));
      const simple_neuron::Tile<1> tile{a.neuron, memory.data()};
      for (std::int32_t row = 0; row < 2 * each; ++row) {
        const std::int32_t slot = row < l.rows ? a.rows.slot[row] : 0;
        const float place[] = {a.flows.x[slot], a.flows.y[slot], a.flows.z[slot]};
        for (int axis = 0; axis < 3; ++axis) tile.position()[axis] = kernels::operand(place[axis], round);
        tile.energy()[0] = a.flows.energy[slot];
        simple_neuron::forward(tile, weights.data(), round);
        for (std::int32_t c = 0; c < 16; ++c) {
          const float due = c < 7 ? tile.features()[c] : a.flows.energy[slot];
          const float got = input[size(row * 16 + c)];
          if (row >= l.rows || c > 7)
            ASSERT_EQ(got, -7.0f) << row << ' ' << c;
          else
            ASSERT_NEAR(got, kernels::guard(due, 10.0f), 1e-5) << row << ' ' << c;
        }
      }
    }
}
TEST(RowKernels, NeuronAsOnTheHost) { neuron_as_on_the_host(NeuronRows{}, false); }
TEST(RowKernels, NeuronOfRoundedOperands) { neuron_as_on_the_host(NeuronRowsBfloat{}, true); }

struct Heads {
  std::int32_t energy, head;
  bool gate;
  int once;  // columns at a time
};
class FinishKernel : public testing::TestWithParam<Heads> {};

TEST_P(FinishKernel, MovesFlowsByTheirOwnRules) {
  const auto [energy, head, gate, once] = GetParam();
  for (const auto order : simt::kAllOrders) {
    Listed l(37);
    Arguments& a = l.a;
    a.heads.columns = {energy, head, (energy + head + (gate ? 8 + head : 0) + 7) / 8 * 8};
    a.heads.rule = {
        .scale = 2, .noise = 0.1f, .threshold = gate ? 0.3f : 0.2f, .most = 3, .gate = gate, .key = {.seed = 7}};
    a.step = 4;
    const std::int32_t all = a.heads.columns.all;
    const Buffer sums = wide(simt::spread(a.slots.all() * all, 9, 2)), bias = wide(simt::spread(all, 10)),
                 energy_out = wide(simt::spread(energy, 11)), displacement_out = wide(simt::spread(3 * head, 12)),
                 gate_out = wide(simt::spread(head, 13)), out_bias = wide(simt::spread(5, 14, 0.3f));
    a.heads.sums = sums.data(), a.heads.bias = bias.data(), a.heads.out_bias = out_bias.data();
    a.heads.energy_out_weight = energy_out.data(), a.heads.displacement_out_weight = displacement_out.data();
    a.heads.gate_out_weight = gate_out.data();
    ASSERT_EQ(carrier_heads::columns_at_once(a.heads.columns), once);
    const Listed before(37);
    constexpr unsigned kBlocks = 1;  // which takes two groups of flows, one after the other
    if (once == 4)
      simt::run_clean(Finish{}, kBlocks, carrier_heads::kHeadThreads, order, a,
                      carrier_heads::forward_shared_bytes(a.heads.columns, gate));
    else
      simt::run_clean(FinishAnyWidth{}, kBlocks, carrier_heads::kHeadThreads, order, a);
    std::int32_t asked = 0, ended = 0;
    for (std::int32_t row = 0; row < l.rows; ++row) {
      const std::int32_t slot = a.rows.slot[row];
      const auto activated = [&](std::int32_t column) {
        return kernels::gelu(double{sums[size(row * all + column)]} + bias[size(column)]);
      };
      double out[5];
      for (int i = 0; i < 5; ++i) out[i] = out_bias[size(i)];
      for (std::int32_t c = 0; c < energy; ++c) out[0] += energy_out[size(c)] * activated(c);
      for (std::int32_t c = 0; c < head; ++c) {
        for (int axis = 0; axis < 3; ++axis)
          out[1 + axis] += displacement_out[size(axis * head + c)] * activated(energy + c);
        if (gate) out[4] += gate_out[size(c)] * activated(energy + head + 8 + c);
      }
      const std::int32_t child = energy + head;
      const auto number = [&](int i) { return static_cast<float>(out[i]); };
      carrier_heads::Rule<float> rule = a.heads.rule;
      rule.key.step = 4;
      const Arguments& given = before.a;
      const auto to = carrier_heads::finish(rule,
                                            {number(0),
                                             {number(1), number(2), number(3)},
                                             number(4),
                                             gate ? sums[size(row * all + child)] + bias[size(child)] : 0},
                                            {given.flows.x[slot], given.flows.y[slot], given.flows.z[slot]},
                                            static_cast<std::uint32_t>(1000 + slot / 37 * 7),
                                            static_cast<std::uint32_t>(slot % 37));
      const auto flow =
          flow_movement::moved(a.movement, false, to.raw.x, to.raw.y, to.raw.z, to.energy, given.flows.age[slot]);
      ASSERT_EQ(a.results.outcome[row], flow.outcome) << row;
      ASSERT_EQ(a.flows.status[slot], flow.status) << row;
      ASSERT_EQ(a.flows.age[slot], flow.age) << row;
      const float got[] = {a.flows.x[slot], a.flows.y[slot], a.flows.z[slot], a.flows.energy[slot],
                           a.flows.distance[slot]},
                  want[] = {flow.x, flow.y, flow.z, flow.energy, flow.distance};
      for (int field = 0; field < 5; ++field) ASSERT_NEAR(got[field], want[field], 1e-5) << row << ' ' << field;
      const std::int32_t requests = flow.status == flow_movement::kActive ? to.spawn_count : 0;
      ASSERT_EQ(a.results.requests[row], requests) << row;
      asked += requests, ended += flow.status != flow_movement::kActive;
      if (requests == 0) continue;
      ASSERT_EQ(a.results.z[row], given.flows.z[slot]) << row;
      ASSERT_NEAR(a.results.child_energy[row], to.child_energy, 1e-5) << row;
    }
    EXPECT_TRUE(asked > 5 && ended > 5) << asked << ' ' << ended;
    for (std::int32_t slot = 1; slot < 74; slot += 3) ASSERT_EQ(a.flows.x[slot], before.a.flows.x[slot]) << slot;
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, FinishKernel,
                         testing::Values(Heads{8, 12, false, 4}, Heads{16, 64, true, 4}, Heads{3, 6, false, 1},
                                         Heads{5, 9, true, 1}));

// A cell's mean by shares, in double; what died, and slots that no flow of this pass has had, are in none.
TEST(SamplesKernel, CollectsWhatIsDone) {
  for (const auto& [width, height] : {std::pair(5, 3), std::pair(67, 65)})
    for (const auto order : simt::kAllOrders) {
      constexpr std::int32_t kSlots = 41;
      Lattice l(2, kSlots, width, height, 1);
      const Arguments& a = l.a;
      std::vector<double> shares(size(2 * a.cells())), sums = shares;
      std::int32_t reached[2] = {};
      const simt::Floats values = simt::spread(4 * 2 * kSlots, 3);
      for (std::int32_t b = 0; b < 2; ++b) {
        a.stats_of(b)[kCells] = 0, a.stats_of(b)[kCreated] = kSlots - 3;
        for (std::int32_t i = 0; i < kSlots; ++i) {
          const std::int32_t slot = b * kSlots + i;
          a.flows.x[slot] = i < 20 ? 0.1f : values[size(4 * slot)],
          a.flows.y[slot] = i < 20 ? -0.7f : values[size(4 * slot + 1)];
          a.flows.energy[slot] = values[size(4 * slot + 2)],
          a.flows.distance[slot] = 0.5f + 0.5f * values[size(4 * slot + 3)];
          a.flows.age[slot] = i % 7;
          l.status[size(slot)] = static_cast<std::uint8_t>(i % 5 == 4 ? flow_movement::kDead : 2 + i % 2);
          if (i >= kSlots - 3 || i % 5 == 4) continue;
          const int cell = surface_collection::cell_along(a.flows.y[slot], height) * width +
                           surface_collection::cell_along(a.flows.x[slot], width);
          const double share =
              std::exp(std::abs(double{a.flows.energy[slot]}) / (1 + a.flows.distance[slot]) * (1 + 0.1 * (i % 7)));
          reached[b] += shares[size(b * a.cells() + cell)] == 0;
          shares[size(b * a.cells() + cell)] += share, sums[size(b * a.cells() + cell)] += share * a.flows.energy[slot];
        }
      }
      const int blocks = 2 * surface_collection::blocks_of_sample(a.cells());
      simt::run_clean(CollectSurfaces{}, static_cast<unsigned>(blocks), surface_collection::kCollectThreads, order, a,
                      std::int64_t{surface_collection::kBytesOfCell} * surface_collection::cells_of_block(a.cells()));
      for (std::int32_t i = 0; i < 2 * a.cells(); ++i)
        ASSERT_NEAR(a.surface[i], shares[size(i)] > 0 ? sums[size(i)] / shares[size(i)] : 0, 2e-6) << i;
      for (std::int32_t b = 0; b < 2; ++b) EXPECT_EQ(a.stats_of(b)[kCells], reached[b]);
    }
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_forward
