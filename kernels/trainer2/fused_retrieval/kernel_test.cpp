// trainer2.fused_retrieval's kernel on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/trainer2/fused_retrieval/kernel.h"

#include <limits>

#include "harness/simt/kernel_testing.h"

namespace twinbench::trainer2::fused_retrieval {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::spread;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  int batch, tokens, capacity, filled, width, axes, planes;
  int candidates() const { return tokens + capacity; }
  std::size_t count(std::int64_t rows, std::int64_t columns) const { return static_cast<std::size_t>(rows * columns); }
};

struct Inputs {
  Floats query, curvature, token_coordinates, token_states, mask, bank_coordinates, bank_states, metric, theta;
  std::vector<std::int32_t> first, second;

  Inputs(const Sizes& s, bool half)
      : query(spread(s.batch * s.axes, 1)),
        curvature(spread(s.batch, 2, 0.3f)),
        token_coordinates(spread(std::int64_t{s.batch} * s.tokens * s.axes, 3)),
        token_states(spread(std::int64_t{s.batch} * s.tokens * s.width, 4)),
        mask(s.count(s.batch, s.tokens)),
        bank_coordinates(spread(s.capacity * s.axes, 5)),
        bank_states(spread(s.capacity * s.width, 6)),
        metric(spread(s.axes, 7, 0.4f)),
        theta(spread(s.planes, 8, 3)) {
    for (float& value : curvature) value += 0.7f;
    for (float& value : metric) value += 0.6f;
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = i % 3 == 1 ? 0.0f : 1.0f;
    for (int plane = 0; plane < s.planes; ++plane) {
      first.push_back(plane % s.axes);
      second.push_back((plane + 1) % s.axes);
    }
    if (half)
      for (Floats* states : {&token_states, &bank_states})
        for (float& value : *states) value = static_cast<float>(static_cast<_Float16>(value));
    // What is not valid is NaN: nobody may look at it.
    for (std::size_t i = 0; i < mask.size(); ++i)
      if (mask[i] == 0) std::fill_n(&token_states[i * static_cast<std::size_t>(s.width)], s.width, kNan);
    for (std::size_t i = s.count(s.filled, s.width); i < bank_states.size(); ++i) bank_states[i] = kNan;
  }
};

std::vector<double> in_frame(const Inputs& in, const float* row, int axes) {
  std::vector<double> turned(row, row + axes);
  for (std::size_t plane = 0; plane < in.theta.size(); ++plane) {
    double &x = turned[static_cast<std::size_t>(in.first[plane])],
           &y = turned[static_cast<std::size_t>(in.second[plane])];
    const double cosine = std::cos(double{in.theta[plane]}), sine = std::sin(double{in.theta[plane]}), before = x;
    x = cosine * before - sine * y;
    y = sine * before + cosine * y;
  }
  return turned;
}

struct Expected {
  std::vector<double> mix, weights;  // [batch, width], [batch, candidates]
};

Expected plain_loop(const Sizes& s, const Inputs& in, double beta) {
  Expected expected;
  for (int sample = 0; sample < s.batch; ++sample) {
    const auto query = in_frame(in, &in.query[s.count(sample, s.axes)], s.axes);
    std::vector<double> cost(static_cast<std::size_t>(s.candidates()), INFINITY);
    double least = INFINITY, sum = 0;
    for (int i = 0; i < s.candidates(); ++i) {
      const bool token = i < s.tokens;
      if (token ? in.mask[s.count(sample, s.tokens) + static_cast<std::size_t>(i)] == 0 : i - s.tokens >= s.filled)
        continue;
      const auto here = in_frame(in,
                                 token ? &in.token_coordinates[s.count(sample * s.tokens + i, s.axes)]
                                       : &in.bank_coordinates[s.count(i - s.tokens, s.axes)],
                                 s.axes);
      double quadratic = 0;
      for (std::size_t axis = 0; axis < here.size(); ++axis)
        quadratic += in.metric[axis] * (here[axis] - query[axis]) * (here[axis] - query[axis]);
      cost[static_cast<std::size_t>(i)] = in.curvature[static_cast<std::size_t>(sample)] * std::sqrt(quadratic + 1e-8);
      least = std::min(least, cost[static_cast<std::size_t>(i)]);
    }
    for (double& one : cost) {
      one = std::isinf(one) ? 0 : std::exp(-beta * (one - least));
      sum += one;
    }
    std::vector<double> mix(static_cast<std::size_t>(s.width), 0.0);
    for (int i = 0; i < s.candidates(); ++i) {
      const double weight = sum > 0 ? cost[static_cast<std::size_t>(i)] / sum : 0;
      expected.weights.push_back(weight);
      if (weight == 0) continue;
      const float* const state = i < s.tokens ? &in.token_states[s.count(sample * s.tokens + i, s.width)]
                                              : &in.bank_states[s.count(i - s.tokens, s.width)];
      for (std::size_t j = 0; j < mix.size(); ++j) mix[j] += weight * state[j];
    }
    expected.mix.insert(expected.mix.end(), mix.begin(), mix.end());
  }
  return expected;
}

template <class Kernel, bool kHalf = false>
void check(const Sizes& s, const Split& split, kernels::simt::Order order) {
  const Inputs in(s, kHalf);
  const Buffer query(in.query), curvature(in.curvature), token_coordinates(in.token_coordinates),
      token_states(in.token_states), mask(in.mask), bank_coordinates(in.bank_coordinates), bank_states(in.bank_states),
      metric(in.metric), theta(in.theta), mix(s.count(s.batch, s.width)), weights(s.count(s.batch, s.candidates())),
      heads(s.count(s.batch, 4 * split.parts())), mixes(s.count(s.batch, std::int64_t{split.parts()} * s.width)),
      costs(weights.size());
  const kernels::simt::GuardedBuffer<std::int32_t> first(in.first), second(in.second);
  std::vector<std::int32_t> all(static_cast<std::size_t>(s.candidates()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int32_t>(i);
  const kernels::simt::GuardedBuffer<std::int32_t> of_weights(all);
  std::vector<_Float16> halves;
  for (const float value : in.bank_states) halves.push_back(static_cast<_Float16>(value));
  const kernels::simt::GuardedBuffer<_Float16> half_states(halves);
  const kernels::simt::GuardedBuffer<std::int64_t> filled(std::vector<std::int64_t>{s.filled});
  const kernels::simt::GuardedBuffer<unsigned> finished(
      std::vector<unsigned>(static_cast<std::size_t>(split.tiles), 0u));
  const Arguments arguments{.batch = s.batch,
                            .tokens = s.tokens,
                            .capacity = s.capacity,
                            .width = s.width,
                            .axes = s.axes,
                            .planes = s.planes,
                            .inspected = s.candidates(),
                            .beta = 5,
                            .query = query.data(),
                            .curvature = curvature.data(),
                            .token_coordinates = token_coordinates.data(),
                            .token_states = token_states.data(),
                            .mask = mask.data(),
                            .bank_coordinates = bank_coordinates.data(),
                            .bank_states = kHalf ? static_cast<const void*>(half_states.data()) : bank_states.data(),
                            .filled = filled.data(),
                            .metric = metric.data(),
                            .theta = theta.data(),
                            .first_axis = first.data(),
                            .second_axis = second.data(),
                            .of_weights = of_weights.data(),
                            .mix = mix.data(),
                            .weights = weights.data(),
                            .split = split,
                            .heads = heads.data(),
                            .mixes = mixes.data(),
                            .costs = costs.data(),
                            .finished = finished.data()};
  const Expected expected = plain_loop(s, in, 5);
  for (int launch = 0; launch < 2; ++launch) {  // the counters are 0 again after the first
    kernels::simt::run_clean(Kernel{}, split.blocks, kThreads, order, arguments,
                             shared_bytes(s.axes, split.chunk, Kernel::kAccess));
    kernels::simt::expect_close(mix, expected.mix, 3e-6, "mix");
    kernels::simt::expect_close(weights, expected.weights, 3e-6, "weights");
  }
}

TEST(FusedRetrievalKernel, MatchesAPlainLoop) {
  for (const auto order : kernels::simt::kAllOrders) {
    const auto small = [&](const Sizes& s) {
      check<RetrieveAnyWidth>(s, split_of(s.batch, s.tokens, s.capacity), order);
    };
    small({1, 1, 1, 1, 1, 2, 1});
    small({3, 33, 0, 0, 5, 3, 4});
    small({9, 5, 70, 37, 67, 5, 7});  // two tiles; slots and columns end within; parts beyond the filled slots
    small({2, 3, 40, 0, 6, 8, 6});    // an empty bank
    check<Retrieve>({8, 36, 65, 65, 260, 8, 6}, split_of(8, 36, 65), order);
    check<RetrieveHalf, true>({8, 36, 65, 40, 68, 8, 6}, split_of(8, 36, 65), order);
    check<RetrieveHalfAnyWidth, true>({3, 5, 40, 33, 7, 8, 6}, split_of(3, 5, 40), order);
  }
}

TEST(FusedRetrievalKernel, LargerPartsGiveTheSame) {
  for (int chunk : {64, 128}) {
    const Sizes s{9, 130, 200, 150, 12, 8, 6};
    Split split;
    split.chunk = chunk;
    split.tiles = 2;
    split.bank_parts = static_cast<int>(kernels::blocks_of(s.capacity, chunk));
    split.token_parts = static_cast<int>(kernels::blocks_of(s.tokens, chunk));
    split.blocks = 2 * split.bank_parts + 9 * split.token_parts;
    check<Retrieve>(s, split, kernels::simt::Order::kShuffled);
  }
}

TEST(FusedRetrievalKernel, SplitFillsTheChip) {
  const Split documented = split_of(64, 512, 2048);
  EXPECT_EQ(documented.chunk, 128);
  EXPECT_EQ(documented.blocks, 8 * 16 + 64 * 4);
  EXPECT_EQ(split_of(32, 128, 2048).chunk, 32);
  EXPECT_EQ(split_of(0, 128, 2048).blocks, 0);
}

}  // namespace
}  // namespace twinbench::trainer2::fused_retrieval
