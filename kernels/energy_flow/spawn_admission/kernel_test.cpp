// energy_flow.spawn_admission's kernels on the host executor, in every thread order: whole steps against a plain loop,
// the documented growth of a sample step by step, and numbers that cannot be.
#include "kernels/energy_flow/spawn_admission/kernel.h"

#include "harness/simt/kernel_testing.h"
#include "kernels/common/grid.h"

namespace twinbench::energy_flow::spawn_admission {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::spread;
using Integers = GuardedBuffer<std::int32_t>;

TEST(SpawnAdmission, Requests) {
  EXPECT_EQ(spawn_requests(1, 3), 3);
  for (const std::uint8_t status : {0, 2, 3, 4}) EXPECT_EQ(spawn_requests(status, 3), 0);
  EXPECT_EQ(spawn_requests(1, -5), 0);
  EXPECT_EQ(spawn_requests(1, 1 << 30), kMostSpawned);
}

TEST(SpawnAdmission, FirstRequestsAreAdmittedUpToTheQuota) {
  EXPECT_EQ(free_slots(4, 6), 2);
  EXPECT_EQ(free_slots(6, 6), 0);
  for (const std::int32_t wrong : {-1, 7}) EXPECT_EQ(free_slots(wrong, 6), 0);
  EXPECT_EQ(children_of(2, 0, 1), 1);
  EXPECT_EQ(children_of(2, 1, 3), 1);
  EXPECT_EQ(children_of(2, 2, 1), 0);
  EXPECT_EQ(children_of(0, 0, 4), 0);
  EXPECT_EQ(children_of(5, 0, 4), 4);
}

struct Shape {
  std::int64_t samples;
  std::int32_t slots, filled, most;  // flows before the step, M
};

// One launch's tensors. Two flows in seven have ended; these, and slots without a flow, ask for children in vain.
struct Step {
  explicit Step(const Shape& s) : shape(s) {
    for (std::int64_t b = 0; b < s.samples; ++b) {
      created[b] = static_cast<std::int32_t>(s.filled + b % 3 < s.slots ? s.filled + b % 3 : s.slots);
      for (std::int32_t slot = 0; slot < s.slots; ++slot) {
        const std::int64_t row = b * s.slots + slot;
        status[row] = slot >= created[b] ? std::uint8_t{0} : slot % 7 > 4 ? std::uint8_t{2} : std::uint8_t{1};
        count[row] = static_cast<std::int32_t>((slot * 5 + b) % (s.most + 1));
      }
    }
  }

  Extents extents() const { return {shape.samples, shape.slots}; }
  // Of fewer samples than there are, so that blocks stride.
  simt::Size3 grid() const {
    return simt::Size3(kernels::blocks_of(shape.slots, kThreads), shape.samples > 2 ? 2 : shape.samples);
  }
  Asking asking() const { return {.status = status.data(), .spawn_count = count.data(), .created = created.data()}; }
  ForwardArguments<float> forward() const {
    return {.extents = extents(),
            .asking = asking(),
            .position = position.data(),
            .child_energy = energy.data(),
            .parent = parent.data(),
            .new_created = new_created.data(),
            .dropped = dropped.data(),
            .born_position = born_position.data(),
            .born_energy = born_energy.data()};
  }

  struct Expected {
    std::vector<std::int32_t> parent, created, dropped;
  };
  Expected expected() const {
    Expected due{std::vector<std::int32_t>(parent.size(), -1), {}, {}};
    for (std::int64_t b = 0; b < shape.samples; ++b) {
      std::int32_t next = created[b], dropped_here = 0;
      for (std::int32_t slot = 0; slot < created[b]; ++slot)
        for (std::int32_t m = 0; status[b * shape.slots + slot] == 1 && m < count[b * shape.slots + slot]; ++m)
          if (next < shape.slots)
            due.parent[static_cast<std::size_t>(b * shape.slots + next++)] = slot;
          else
            ++dropped_here;
      due.created.push_back(next);
      due.dropped.push_back(dropped_here);
    }
    return due;
  }

  Shape shape;
  std::size_t rows = static_cast<std::size_t>(shape.samples * shape.slots);
  std::size_t samples = static_cast<std::size_t>(shape.samples);
  GuardedBuffer<std::uint8_t> status{rows};
  Integers count{rows}, created{samples}, parent{rows}, new_created{samples}, dropped{samples};
  Buffer position{spread(3 * shape.samples * shape.slots, 1)}, energy{spread(shape.samples * shape.slots, 2)};
  Buffer born_position{3 * rows}, born_energy{rows};
};

class SpawnAdmissionKernels : public testing::TestWithParam<Shape> {};

TEST_P(SpawnAdmissionKernels, WriteEverySlot) {
  const Step s(GetParam());
  const Step::Expected due = s.expected();
  for (const auto order : simt::kAllOrders) {
    simt::run_clean(Admit{}, s.grid(), kThreads, order, s.forward());
    simt::expect_close(s.parent, due.parent, 0, "parent");
    simt::expect_close(s.new_created, due.created, 0, "created");
    simt::expect_close(s.dropped, due.dropped, 0, "dropped");
    for (std::size_t row = 0; row < s.rows; ++row) {
      const std::int32_t parent = due.parent[row];
      const std::size_t slots = static_cast<std::size_t>(s.shape.slots);
      const std::size_t from = row / slots * slots + static_cast<std::size_t>(parent < 0 ? 0 : parent);
      ASSERT_EQ(s.born_energy[row], parent < 0 ? 0 : s.energy[from]) << row;
      for (std::size_t k = 0; k < 3; ++k)
        ASSERT_EQ(s.born_position[3 * row + k], parent < 0 ? 0 : s.position[3 * from + k]) << row;
    }
  }
}

TEST_P(SpawnAdmissionKernels, GradientsOfEveryFlow) {
  const Step s(GetParam());
  const Step::Expected due = s.expected();
  const Buffer of_position(spread(3 * s.shape.samples * s.shape.slots, 5));
  const Buffer of_energy(spread(s.shape.samples * s.shape.slots, 6));
  simt::Floats position(3 * s.rows), energy(s.rows);
  for (std::size_t row = 0; row < s.rows; ++row) {
    if (due.parent[row] < 0) continue;
    const std::size_t slots = static_cast<std::size_t>(s.shape.slots);
    const std::size_t to = row / slots * slots + static_cast<std::size_t>(due.parent[row]);
    energy[to] += of_energy[row];
    for (std::size_t k = 0; k < 3; ++k) position[3 * to + k] += of_position[3 * row + k];
  }
  const Buffer grad_position(position.size()), grad_energy(energy.size());
  for (const auto order : simt::kAllOrders) {
    simt::run_clean(AdmitBack{}, s.grid(), kThreads, order,
                    BackwardArguments<float>{.extents = s.extents(),
                                             .asking = s.asking(),
                                             .grad_born_position = of_position.data(),
                                             .grad_born_energy = of_energy.data(),
                                             .grad_position = grad_position.data(),
                                             .grad_child_energy = grad_energy.data()});
    simt::expect_close(grad_position, position, 0, "position");
    simt::expect_close(grad_energy, energy, 0, "energy");
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SpawnAdmissionKernels,
                         testing::Values(Shape{1, 1, 1, 3}, Shape{3, 33, 20, 3}, Shape{2, 64, 64, 2},
                                         Shape{1, 300, 10, 40}, Shape{4, 257, 128, 1}, Shape{1, 1000, 250, 5},
                                         Shape{5, 40, 20, 0}, Shape{2, 600, 300, 1}, Shape{1, 3500, 1900, 1}));

// Specification C14: every flow spawns in every step, TOY's flows going 0.42 down in each; run S has a quota of 6.
struct Growth {
  std::vector<std::int32_t> created;
  std::int32_t dropped = 0;
};
Growth grown(std::int32_t slots, int steps) {
  const Step s({1, slots, 4, 1});
  Growth growth{{4}};
  for (std::int32_t slot = 0; slot < slots; ++slot) s.position[3 * slot + 2] = 0;
  for (int step = 0; step < steps; ++step) {
    s.created[0] = growth.created.back();
    for (std::int32_t slot = 0; slot < slots; ++slot) {
      const bool active = slot < s.created[0] && s.position[3 * slot + 2] - 0.42f > -1;
      s.status[slot] = active ? std::uint8_t{1} : std::uint8_t{2};
      s.count[slot] = 1;
    }
    simt::run_clean(Admit{}, s.grid(), kThreads, simt::Order::kShuffled, s.forward());
    for (std::int32_t slot = 0; slot < slots; ++slot) {
      float& depth = s.position[3 * slot + 2];
      if (slot < s.created[0]) depth -= 0.42f;
      if (s.parent[slot] >= 0) depth = s.born_position[3 * slot + 2];
    }
    growth.created.push_back(s.new_created[0]);
    growth.dropped += s.dropped[0];
  }
  return growth;
}
TEST(SpawnAdmission, DocumentedGrowth) {
  EXPECT_EQ(grown(100, 6).created, (std::vector<std::int32_t>{4, 8, 16, 28, 44, 64, 88}));
  EXPECT_EQ(grown(100, 6).dropped, 0);
  const Growth run_s = grown(6, 4);
  EXPECT_EQ(run_s.created, (std::vector<std::int32_t>{4, 6, 6, 6, 6}));
  EXPECT_EQ(run_s.dropped, 10);
}

// A set-up that is kept gets new numbers later: counts of flows that cannot be admit nobody.
TEST(SpawnAdmission, NumbersThatCannotBe) {
  for (const std::int32_t wrong : {-1, -2000000000, 41, 2000000000}) {
    const Step s({2, 40, 20, 3});
    s.created[1] = wrong;
    s.count[3] = -7;
    s.count[4] = 2000000000;
    simt::run_clean(Admit{}, s.grid(), kThreads, simt::Order::kForward, s.forward());
    EXPECT_EQ(s.new_created[0], 40);
    EXPECT_EQ(s.new_created[1], wrong);
    for (std::int32_t slot = 0; slot < 40; ++slot) ASSERT_EQ(s.parent[40 + slot], -1);
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::spawn_admission
