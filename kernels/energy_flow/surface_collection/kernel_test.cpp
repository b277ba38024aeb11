// energy_flow.surface_collection's kernels on the host executor, in every thread order, against a plain loop in fp64;
// any order of threads and of slots gives the same bits.
#include <limits>
#include <map>
#include <numeric>

#include "harness/simt/kernel_testing.h"
#include "kernels/energy_flow/surface_collection/passes_kernel.h"

namespace twinbench::energy_flow::surface_collection {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;

constexpr std::int32_t kForward = 5;

struct Problem {
  int batch, width, height, slots;
  Floats energy, position, distance, grad_surface;
  std::vector<std::int32_t> age, forward_id;
  std::vector<std::uint8_t> status;

  Problem(int batch_, int width_, int height_, int slots_, unsigned reach = ~0u)
      : batch(batch_), width(width_), height(height_), slots(slots_) {
    energy = kernels::simt::spread(batch * slots, 1);
    distance = kernels::simt::spread(batch * slots, 2);
    grad_surface = kernels::simt::spread(cells(), 3);
    position.assign(static_cast<std::size_t>(3 * batch * slots), 0.0f);
    for (int entry = 0; entry < batch * slots; ++entry) {
      const auto at = static_cast<std::size_t>(entry);
      const unsigned place = (static_cast<unsigned>(entry) * 2654435761u >> 7) % reach;
      x(entry) = coordinate(static_cast<int>(place % static_cast<unsigned>(width)), width);
      x(entry, 1) =
          coordinate(static_cast<int>(place / static_cast<unsigned>(width) % static_cast<unsigned>(height)), height);
      distance[at] = std::fabs(distance[at]);
      age.push_back(entry % 13);
      forward_id.push_back(entry % 11 == 4 ? kForward - 1 : kForward);
      status.push_back(entry % 5 == 3 ? static_cast<std::uint8_t>(entry % 2 ? 1 : 4)
                                      : static_cast<std::uint8_t>(2 + entry % 2));
    }
  }
  int cells() const { return batch * width * height; }
  float& x(int entry, int axis = 0) {
    return position[static_cast<std::size_t>((entry / slots * 3 + axis) * slots + entry % slots)];
  }
  static float coordinate(int place, int extent) {
    return 2.0f * static_cast<float>(place) / static_cast<float>(extent - 1) - 1.0f;
  }
  // The slots of every sample in another order.
  Problem turned(const std::vector<int>& order) const {
    Problem other = *this;
    for (int entry = 0; entry < batch * slots; ++entry) {
      const auto to = static_cast<std::size_t>(entry);
      const auto from =
          static_cast<std::size_t>(entry / slots * slots + order[static_cast<std::size_t>(entry % slots)]);
      other.energy[to] = energy[from], other.distance[to] = distance[from], other.age[to] = age[from];
      other.forward_id[to] = forward_id[from], other.status[to] = status[from];
      for (int axis = 0; axis < 3; ++axis) other.x(entry, axis) = Problem(*this).x(static_cast<int>(from), axis);
    }
    return other;
  }
};

struct Result {
  Floats surface, grad_energy;
  std::vector<std::int32_t> cell;
};

struct Expected {
  std::vector<double> surface, grad_energy;
  std::vector<std::int32_t> cell;
};

Expected plain_loop(Problem p) {
  Expected expected{std::vector<double>(static_cast<std::size_t>(p.cells())), std::vector<double>(p.energy.size()),
                    std::vector<std::int32_t>(p.energy.size(), -1)};
  std::map<int, std::vector<int>> flows;
  for (int entry = 0; entry < p.batch * p.slots; ++entry) {
    const auto at = static_cast<std::size_t>(entry);
    if ((p.status[at] != 2 && p.status[at] != 3) || p.forward_id[at] != kForward) continue;
    const auto along = [&](int axis, int extent) {
      return static_cast<int>(std::lround((double{p.x(entry, axis)} + 1) / 2 * (extent - 1)));
    };
    expected.cell[at] = along(1, p.height) * p.width + along(0, p.width);
    flows[entry / p.slots * p.width * p.height + expected.cell[at]].push_back(entry);
  }
  for (const auto& [cell, group] : flows) {
    const auto factor = [&](int entry) {
      const auto at = static_cast<std::size_t>(entry);
      return (1 + 0.1 * p.age[at]) / (1 + double{p.distance[at]});
    };
    const auto energy = [&](int entry) { return double{p.energy[static_cast<std::size_t>(entry)]}; };
    double shares = 0, energies = 0;
    for (const int entry : group) {
      const double share = std::exp(std::fabs(energy(entry)) * factor(entry));
      shares += share;
      energies += share * energy(entry);
    }
    const double mean = energies / shares;
    expected.surface[static_cast<std::size_t>(cell)] = mean;
    for (const int entry : group) {
      const double sign = energy(entry) > 0 ? 1 : energy(entry) < 0 ? -1 : 0;
      expected.grad_energy[static_cast<std::size_t>(entry)] =
          double{p.grad_surface[static_cast<std::size_t>(cell)]} * std::exp(std::fabs(energy(entry)) * factor(entry)) /
          shares * (1 + sign * factor(entry) * (energy(entry) - mean));
    }
  }
  return expected;
}

Result run(const Problem& p, kernels::simt::Order order, bool in_passes) {
  const Buffer energy(p.energy), position(p.position), distance(p.distance), grad_surface(p.grad_surface),
      grad_energy(p.energy.size()), surface(static_cast<std::size_t>(p.cells()));
  const GuardedBuffer<std::int32_t> age(p.age), forward_id(p.forward_id), cell(p.energy.size());
  const GuardedBuffer<std::uint8_t> status(p.status);
  const auto cells = static_cast<std::size_t>(p.cells());
  const Buffer largest(cells);
  const GuardedBuffer<unsigned> magnitude(cells);
  const GuardedBuffer<unsigned long long> shares(cells), energies(cells);
  Arguments forward{.batch = p.batch,
                    .width = p.width,
                    .height = p.height,
                    .slots = p.slots,
                    .forward = kForward,
                    .energy = energy.data(),
                    .position = position.data(),
                    .distance = distance.data(),
                    .age = age.data(),
                    .status = status.data(),
                    .forward_id = forward_id.data(),
                    .surface = surface.data(),
                    .cell = cell.data(),
                    .largest_weight = largest.data(),
                    .magnitude = magnitude.data(),
                    .shares = shares.data(),
                    .energies = energies.data()};
  Arguments backward = forward;
  backward.cell = nullptr, backward.surface = nullptr;
  backward.grad_surface = grad_surface.data(), backward.grad_energy = grad_energy.data();
  const int each = cells_of_block(p.width * p.height);
  const auto blocks = static_cast<unsigned>(p.batch * blocks_of_sample(p.width * p.height));
  using kernels::simt::run_clean;
  for (const Arguments& a : {forward, backward})
    if (in_passes) {
      run_clean(ClearCells{}, 3, kPassThreads, order, a);
      run_clean(CellMaxima{}, 3, kPassThreads, order, a);
      run_clean(CellSums{}, 3, kPassThreads, order, a);
      a.grad_surface ? run_clean(EnergyGradients{}, 3, kPassThreads, order, a)
                     : run_clean(CellMeans{}, 3, kPassThreads, order, a);
    } else {
      a.grad_surface ? run_clean(CollectBackward{}, blocks, kThreads, order, a, kBytesOfCell * each)
                     : run_clean(Collect{}, blocks, kThreads, order, a, kBytesOfCell * each);
    }
  return {Floats(surface.data(), surface.data() + surface.size()),
          Floats(grad_energy.data(), grad_energy.data() + grad_energy.size()),
          std::vector<std::int32_t>(cell.data(), cell.data() + cell.size())};
}

TEST(SurfaceCollectionKernel, MatchesAPlainLoop) {
  for (const Problem& p :
       {Problem(1, 2, 2, 4), Problem(2, 7, 5, 61), Problem(3, 4, 3, 130, 1), Problem(1, 19, 11, 300, 20)}) {
    const Expected expected = plain_loop(p);
    for (const bool in_passes : {false, true}) {
      const Result first = run(p, kernels::simt::kAllOrders[0], in_passes);
      kernels::simt::expect_close(first.surface, expected.surface, 1e-6, "surface");
      kernels::simt::expect_close(first.grad_energy, expected.grad_energy, 1e-6, "grad_energy");
      EXPECT_EQ(first.cell, expected.cell);
      for (const auto order : kernels::simt::kAllOrders) {
        const Result again = run(p, order, in_passes);
        EXPECT_EQ(again.surface, first.surface) << "exact sums have no order";
        EXPECT_EQ(again.grad_energy, first.grad_energy);
      }
    }
  }
}

TEST(SurfaceCollectionKernel, TakesMoreSlotsThanItKeeps) {
  const Problem p(1, 5, 3, kThreads * kKept + 301);
  const Expected expected = plain_loop(p);
  const Result result = run(p, kernels::simt::kAllOrders[0], false);
  kernels::simt::expect_close(result.surface, expected.surface, 1e-6, "surface");
  kernels::simt::expect_close(result.grad_energy, expected.grad_energy, 1e-6, "grad_energy");
  EXPECT_EQ(result.cell, expected.cell);
}

TEST(SurfaceCollectionKernel, TakesMoreCellsThanABlockHolds) {
  const Problem p(2, 103, 61, 700);
  const Expected expected = plain_loop(p);
  const Result result = run(p, kernels::simt::kAllOrders[0], false);
  kernels::simt::expect_close(result.surface, expected.surface, 1e-6, "surface");
  kernels::simt::expect_close(result.grad_energy, expected.grad_energy, 1e-6, "grad_energy");
  EXPECT_EQ(result.cell, expected.cell);
}

TEST(SurfaceCollectionKernel, SlotsMayLieInAnyOrder) {
  const Problem p(2, 4, 3, 97, 5);
  std::vector<int> order(97);
  for (int slot = 0; slot < 97; ++slot) order[static_cast<std::size_t>(slot)] = slot * 31 % 97;
  const Result one = run(p, kernels::simt::kAllOrders[0], false);
  const Result other = run(p.turned(order), kernels::simt::kAllOrders[0], false);
  EXPECT_EQ(one.surface, other.surface);
  for (int entry = 0; entry < 2 * 97; ++entry)
    EXPECT_EQ(other.grad_energy[static_cast<std::size_t>(entry)],
              one.grad_energy[static_cast<std::size_t>(entry / 97 * 97 + order[static_cast<std::size_t>(entry % 97)])]);
}

TEST(SurfaceCollectionKernel, AnyMagnitudeKeepsItsDigits) {
  constexpr float kLeast = std::numeric_limits<float>::denorm_min(), kMost = std::numeric_limits<float>::max();
  for (const float scale : {kLeast * 4096, 1e-30f, 1.0f, 0x1p126f, 0x1p127f}) {
    Problem p(1, 2, 2, 3, 1);
    p.energy = {scale, scale, scale};
    p.status = {2, 2, 2};
    p.forward_id = {kForward, kForward, kForward};
    p.distance = {kMost, kMost, kMost};  // weights stay small: all are equal
    EXPECT_EQ(run(p, kernels::simt::kAllOrders[0], false).surface[0], scale);
  }
}

TEST(SurfaceCollectionKernel, WhatIsNotFiniteStaysInItsCell) {
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Problem p(1, 3, 2, 30);
    const Result before = run(p, kernels::simt::kAllOrders[0], false);
    p.energy[6] = odd;
    for (const bool in_passes : {false, true}) {
      const Result after = run(p, kernels::simt::kAllOrders[0], in_passes);
      for (int cell = 0; cell < 6; ++cell) {
        const auto at = static_cast<std::size_t>(cell);
        if (cell == before.cell[6])
          EXPECT_TRUE(std::isnan(after.surface[at]));
        else
          EXPECT_EQ(after.surface[at], before.surface[at]);
      }
    }
  }
}

TEST(SurfaceCollectionMath, HalvesGoToTheEvenCell) {
  for (const auto& [x, cell] : {std::pair{-0.75f, 0},
                                {-0.25f, 2},
                                {0.25f, 2},
                                {0.75f, 4},
                                {0.749999f, 3},
                                {1.0f, 4},
                                {-1.0f, 0},
                                {1.5f, 4},
                                {-1.5f, 0},
                                {std::numeric_limits<float>::quiet_NaN(), 0}})
    EXPECT_EQ(cell_along(x, 5), cell) << x;
}

}  // namespace
}  // namespace twinbench::energy_flow::surface_collection
