// energy_flow.flow_storage's kernel on the host executor, in every thread order, against a plain map of flows: births,
// updates, ends, and forwards that follow one another in the same storage.
#include "kernels/energy_flow/flow_storage/kernel.h"

#include <map>

#include "harness/simt/kernel_testing.h"
#include "harness/simt/sparse_array.h"
#include "kernels/common/grid.h"

namespace twinbench::energy_flow::flow_storage {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::spread;
using Integers = GuardedBuffer<std::int32_t>;

struct Shape {
  std::int64_t samples, slots, layers, hidden;
  bool bf16;
};

struct Flow {
  std::int32_t age = 0, cell = -1;
  std::uint8_t status = kActive;
  float energy = 0, distance = 0;
  int step = 0;  // of the last update
};

// The storage, as the forward before has left it (at first nothing at all), and one step's data.
struct Arena {
  explicit Arena(const Shape& s) : shape(s) {
    for (std::size_t i = 0; i < capacity; ++i) forward_id[i] = 0;
  }
  // What flows have after `step` of `forward`; tells births from updates by `birth`.
  Step step_of(int forward, int step) {
    const auto number = static_cast<unsigned>(10 * forward + step + 1);
    const simt::Floats values = spread(static_cast<std::int64_t>(wide + 5 * capacity), number);
    for (std::size_t i = 0; i < capacity; ++i) {
      const std::size_t kind = (7 * i + 3 * static_cast<std::size_t>(forward)) % 11;
      birth[i] = kind == 0 ? -1 : kind < 9 ? 0 : static_cast<std::int32_t>(kind) - 8;
      given_status[i] = static_cast<std::uint8_t>((i + number) % 5 == 0 ? 2 + (i + number) % 3 : 1);
      given_energy[i] = values[i];
      given_distance[i] = values[capacity + i];
      given_cell[i] = static_cast<std::int32_t>(1000 * number + i);
      for (std::size_t axis = 0; axis < 3; ++axis)
        given_position[axis * capacity + i] = values[(2 + axis) * capacity + i];
    }
    for (std::size_t i = 0; i < wide; ++i) given_hidden[i] = values[5 * capacity + i];
    return {.extents = {shape.samples, shape.layers, shape.hidden, shape.slots},
            .storage = {.position = position.data(),
                        .energy = energy.data(),
                        .hidden = shape.bf16 ? kernels::Operands<float>{.bf16 = rounded.data()}
                                             : kernels::Operands<float>{.plain = hidden.data()},
                        .sample = sample.data(),
                        .local_id = local_id.data(),
                        .age = age.data(),
                        .status = status.data(),
                        .distance = distance.data(),
                        .cell = cell.data(),
                        .forward_id = forward_id.data()},
            .forward = forward,
            .step = step,
            .birth = birth.data(),
            .position = given_position.data(),
            .energy = given_energy.data(),
            .hidden = given_hidden.data(),
            .status = given_status.data(),
            .distance = given_distance.data(),
            .cell = given_cell.data()};
  }

  Shape shape;
  std::size_t capacity = static_cast<std::size_t>(shape.samples * shape.slots);
  std::size_t wide = capacity * static_cast<std::size_t>(shape.layers * shape.hidden);
  Buffer position{3 * capacity}, energy{capacity}, hidden{wide}, distance{capacity};
  GuardedBuffer<std::uint16_t> rounded{wide};
  Integers sample{capacity}, local_id{capacity}, age{capacity}, cell{capacity}, forward_id{capacity};
  GuardedBuffer<std::uint8_t> status{capacity}, given_status{capacity};
  Integers birth{capacity}, given_cell{capacity};
  Buffer given_position{3 * capacity}, given_energy{capacity}, given_hidden{wide}, given_distance{capacity};
};

class FlowStorageKernel : public testing::TestWithParam<Shape> {};

TEST_P(FlowStorageKernel, HoldsWhatAMapOfFlowsHolds) {
  for (const auto order : simt::kAllOrders) {
    Arena arena(GetParam());
    for (int forward = 1; forward <= 3; ++forward) {
      std::map<std::size_t, Flow> flows;
      for (int step = 0; step < 3; ++step) {
        const Step a = arena.step_of(forward, step);
        simt::run_clean(StoreStep{}, kernels::blocks_of(a.extents.capacity(), kSlots), kThreads, order, a);
        for (std::size_t i = 0; i < arena.capacity; ++i) {
          const auto found = flows.find(i);
          if (a.birth[i] == step) {
            flows[i] = {.energy = a.energy[i], .step = step};
          } else if (found != flows.end() && found->second.status == kActive) {
            Flow& flow = found->second;
            flow = {flow.age + 1, flow.cell, a.status[i], a.energy[i], flow.distance, step};
            if (is_completed(flow.status)) flow.distance = a.distance[i], flow.cell = a.cell[i];
          }
        }
        for (const auto& [i, flow] : flows) {
          ASSERT_EQ(arena.forward_id[i], forward);
          ASSERT_EQ(arena.status[i], flow.status) << i;
          ASSERT_EQ(arena.age[i], flow.age) << i;
          ASSERT_EQ(arena.energy[i], flow.energy) << i;
          ASSERT_EQ(arena.distance[i], flow.distance) << i;
          ASSERT_EQ(arena.cell[i], flow.cell) << i;
          ASSERT_EQ(arena.sample[i], i / static_cast<std::size_t>(arena.shape.slots));
          ASSERT_EQ(arena.local_id[i], i % static_cast<std::size_t>(arena.shape.slots));
          if (flow.step != step) continue;
          for (std::size_t axis = 0; axis < 3; ++axis)
            ASSERT_EQ(arena.position[axis * arena.capacity + i], a.position[axis * arena.capacity + i]);
          const auto width = static_cast<std::size_t>(arena.shape.hidden);
          for (std::size_t layer = 0; layer < static_cast<std::size_t>(arena.shape.layers); ++layer)
            for (std::size_t k = 0; k < width; ++k) {
              const std::size_t at = (layer * arena.capacity + i) * width + k;
              if (arena.shape.bf16)
                ASSERT_EQ(arena.rounded[at], kernels::bf16_bits(a.hidden[at]));
              else
                ASSERT_EQ(arena.hidden[at], a.hidden[at]);
            }
        }
        for (std::size_t i = 0; i < arena.capacity; ++i)
          if (flows.count(i) == 0) {
            ASSERT_NE(arena.forward_id[i], forward) << i;
          }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FlowStorageKernel,
                         testing::Values(Shape{1, 1, 1, 1, false}, Shape{3, 11, 2, 5, false}, Shape{2, 32, 1, 8, true},
                                         Shape{5, 13, 2, 132, false}, Shape{3, 20, 3, 7, true}));

// The last block of a storage of 4,194,307 slots and 4.3e9 elements of hidden state: 17 GB of a card, of which the host
// maps a few pages.
TEST(FlowStorageKernel, IndicesBeyond32Bits) {
  constexpr std::int64_t kCapacity = (std::int64_t{1} << 22) + 3, kLayers = 2, kHidden = 512, kLast = kCapacity - 1;
  using simt::SparseArray;
  SparseArray<float> position(3 * kCapacity), energy(kCapacity), hidden(kLayers * kCapacity * kHidden);
  SparseArray<float> distance(kCapacity), given_position(3 * kCapacity), given_energy(kCapacity);
  SparseArray<float> given_hidden(kLayers * kCapacity * kHidden), given_distance(kCapacity);
  SparseArray<std::int32_t> sample(kCapacity), local_id(kCapacity), age(kCapacity), cell(kCapacity);
  SparseArray<std::int32_t> forward_id(kCapacity), birth(kCapacity), given_cell(kCapacity);
  SparseArray<std::uint8_t> status(kCapacity), given_status(kCapacity);
  // The block's other slots are neither born nor active: theirs is another forward.
  for (std::int64_t slot = kCapacity / kSlots * kSlots; slot < kLast; ++slot) birth[slot] = -1;
  birth[kLast] = 5;
  given_energy[kLast] = 0.5f;
  for (std::int64_t axis = 0; axis < 3; ++axis)
    given_position[axis * kCapacity + kLast] = 1.0f + static_cast<float>(axis);
  const auto row = [](std::int64_t layer) { return (layer * kCapacity + kLast) * kHidden; };
  for (std::int64_t layer = 0; layer < kLayers; ++layer)
    for (std::int64_t i = 0; i < kHidden; ++i)
      given_hidden[row(layer) + i] = static_cast<float>(1 + layer * kHidden + i);
  const Step step{.extents = {1, kLayers, kHidden, kCapacity},
                  .storage = {.position = position.data(),
                              .energy = energy.data(),
                              .hidden = kernels::Operands<float>{.plain = hidden.data()},
                              .sample = sample.data(),
                              .local_id = local_id.data(),
                              .age = age.data(),
                              .status = status.data(),
                              .distance = distance.data(),
                              .cell = cell.data(),
                              .forward_id = forward_id.data()},
                  .forward = 3,
                  .step = 5,
                  .birth = birth.data(),
                  .position = given_position.data(),
                  .energy = given_energy.data(),
                  .hidden = given_hidden.data(),
                  .status = given_status.data(),
                  .distance = given_distance.data(),
                  .cell = given_cell.data()};
  const std::int64_t blocks = kernels::blocks_of(kCapacity, kSlots);
  const simt::Report report =
      simt::launch_on_host(StoreStep{}, blocks, kThreads, 0, {.only_blocks = {blocks - 1}}, step);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(local_id[kLast], kLast);
  EXPECT_EQ(energy[kLast], 0.5f);
  for (std::int64_t axis = 0; axis < 3; ++axis)
    EXPECT_EQ(position[axis * kCapacity + kLast], 1.0f + static_cast<float>(axis));
  for (std::int64_t layer = 0; layer < kLayers; ++layer)
    for (std::int64_t i = 0; i < kHidden; ++i)
      ASSERT_EQ(hidden[row(layer) + i], static_cast<float>(1 + layer * kHidden + i)) << layer << " " << i;
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_storage
