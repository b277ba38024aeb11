// energy_flow.flow_placement's kernels on the host executor, in every thread order, against a plain loop.
#include "kernels/energy_flow/flow_placement/kernel.h"

#include "harness/simt/kernel_testing.h"
#include "kernels/common/grid.h"

namespace twinbench::energy_flow::flow_placement {
namespace {

using simt::Buffer;
using simt::GuardedBuffer;
using simt::spread;

// Blocks along the samples: fewer than there are, so that they stride.
simt::Size3 grid(std::int64_t along, std::int64_t samples) {
  return simt::Size3(kernels::blocks_of(along, kThreads), samples > 2 ? 2 : samples);
}

TEST(FlowPlacement, Coordinates) {
  EXPECT_EQ(normalized(0, 1), -1);
  EXPECT_EQ(normalized(1, 1), 1);
  EXPECT_EQ(normalized(1, 3), 2.0f / 3.0f - 1.0f);
  EXPECT_EQ(start_depth(4), 0);
  EXPECT_EQ(start_depth(5), 2.0f * 2 / 5 - 1);
  EXPECT_EQ(start_depth(2), 0);
  EXPECT_EQ(flow_uid(3, 5), (std::int64_t{3} << 32) + 5);
}

class FlowPlacementKernels : public testing::TestWithParam<Lattice> {};

TEST_P(FlowPlacementKernels, PlaceEveryFlow) {
  const Lattice l = GetParam();
  const std::int64_t flows = l.samples * l.placed;
  const auto count = static_cast<std::size_t>(flows);
  const Buffer surface(spread(l.samples * l.cells(), 1)), position(3 * count), energy(count);
  const GuardedBuffer<std::int32_t> sample(count), local(count);
  const GuardedBuffer<std::int64_t> uid(count), key(static_cast<std::size_t>(l.samples));
  for (std::int64_t b = 0; b < l.samples; ++b) key[b] = 100 + 7 * b;
  for (const auto order : simt::kAllOrders) {
    simt::run_clean(Place{}, grid(l.placed, l.samples), kThreads, order,
                    ForwardArguments<float>{.lattice = l,
                                            .surface = surface.data(),
                                            .sample_key = key.data(),
                                            .position = position.data(),
                                            .energy = energy.data(),
                                            .sample = sample.data(),
                                            .local_id = local.data(),
                                            .uid = uid.data()});
    for (std::int64_t f = 0; f < flows; ++f) {
      const std::int64_t b = f / l.placed, s = f % l.placed;
      ASSERT_EQ(position[3 * f], normalized(static_cast<std::int32_t>(s % l.width), l.width - 1)) << f;
      ASSERT_EQ(position[3 * f + 1], normalized(static_cast<std::int32_t>(s / l.width), l.height - 1)) << f;
      ASSERT_EQ(position[3 * f + 2], start_depth(l.depth)) << f;
      ASSERT_EQ(energy[f], surface[b * l.cells() + s]) << f;
      ASSERT_EQ(sample[f], b) << f;
      ASSERT_EQ(local[f], s) << f;
      ASSERT_EQ(uid[f], flow_uid(100 + 7 * b, static_cast<std::int32_t>(s))) << f;
    }
  }
}

TEST_P(FlowPlacementKernels, GradientsOfEveryCell) {
  const Lattice l = GetParam();
  const Buffer given(spread(l.samples * l.placed, 2)), surface(static_cast<std::size_t>(l.samples * l.cells()));
  for (const auto order : simt::kAllOrders) {
    simt::run_clean(
        PlaceBack{}, grid(l.cells(), l.samples), kThreads, order,
        BackwardArguments<float>{.lattice = l, .grad_energy = given.data(), .grad_surface = surface.data()});
    for (std::int64_t i = 0; i < l.samples * l.cells(); ++i) {
      const std::int64_t b = i / l.cells(), s = i % l.cells();
      ASSERT_EQ(surface[i], s < l.placed ? given[b * l.placed + s] : 0) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FlowPlacementKernels,
                         testing::Values(Lattice{.samples = 1, .width = 2, .height = 2, .depth = 4, .placed = 4},
                                         Lattice{.samples = 5, .width = 9, .height = 11, .depth = 5, .placed = 70},
                                         Lattice{.samples = 3, .width = 16, .height = 8, .depth = 20, .placed = 128},
                                         Lattice{.samples = 2, .width = 13, .height = 7, .depth = 3, .placed = 1}));

}  // namespace
}  // namespace twinbench::energy_flow::flow_placement
