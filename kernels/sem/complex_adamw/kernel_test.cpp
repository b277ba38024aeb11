// sem.complex_adamw's kernels on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/sem/complex_adamw/kernel.h"

#include <limits>

#include "harness/simt/kernel_testing.h"

namespace twinbench::sem::complex_adamw {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;
using kernels::simt::Order;
using kernels::simt::spread;
using Doubles = std::vector<double>;
using Integers = std::vector<std::int64_t>;

constexpr std::uint64_t kSeed = 0x123456789abcdefu;
constexpr float kRate = 0.01f;

// Tensors of these lengths, complex ones as two; a length below 0: without a gradient.
struct Problem {
  std::vector<std::pair<std::int64_t, bool>> tensors;
  Rule rule{.clip = 1, .weight_decay = 0.1, .temperature = 0};
  bool clears = true;
  float loss = 1;
  Counts before{4, 3, 2};
  std::vector<Piece> pieces{};
  Floats parameters{}, gradients{}, first{}, second{};

  explicit Problem(std::vector<std::pair<std::int64_t, bool>> of) : tensors(std::move(of)) {
    std::int64_t elements = 0, seconds = 0;
    std::uint32_t ordinal = 0;
    for (const auto& [length, complex] : tensors) {
      const std::int64_t count = std::abs(length);
      for (std::int64_t at = 0; length > 0 && at < count; at += 1000)
        pieces.push_back({.first = elements + at,
                          .second = seconds + at,
                          .partner = complex ? count : 0,
                          .element = at,
                          .count = static_cast<std::int32_t>(std::min<std::int64_t>(1000, count - at)),
                          .stream = 0x2000 + ordinal});
      elements += complex ? 2 * count : count;
      seconds += count;
      ordinal += complex ? 2 : 1;
    }
    parameters = spread(elements, 1);
    gradients = spread(elements, 2, 0.2f);
    first = spread(elements, 3, 0.05f);
    second = spread(seconds, 4, 5e-4f);
    for (float& value : second) value += 6e-4f;
  }
};

struct Result {
  Floats parameters, gradients, first, second;
  Integers counts, status;
  Doubles norm, coefficient;
};

double noise(std::uint32_t stream, std::uint32_t number, std::uint64_t n) {
  const PhiloxWords words = philox(kSeed, static_cast<std::uint32_t>(n / 4), 0, stream, number);
  const auto uniform = [&](std::uint64_t at) { return (words.w[at] + 0.5) * 0x1p-32; };
  const auto pair = n % 4 / 2 * 2;
  const double turn = 2 * 3.14159265358979323846 * uniform(pair + 1);
  return std::sqrt(-2 * std::log(uniform(pair))) * (n % 2 ? std::sin(turn) : std::cos(turn));
}

struct Expected {
  Doubles parameters, gradients, first, second;
  double norm = 0, coefficient = 0;
};

Expected plain_loop(const Problem& p) {
  Expected e{{p.parameters.begin(), p.parameters.end()},
             {p.gradients.begin(), p.gradients.end()},
             {p.first.begin(), p.first.end()},
             {p.second.begin(), p.second.end()}};
  const auto each = [&](const auto& body) {
    for (const Piece& piece : p.pieces)
      for (int i = 0; i < piece.count; ++i)
        for (int part = 0; part < (piece.partner ? 2 : 1); ++part)
          body(piece, part, static_cast<std::size_t>(piece.first + part * piece.partner + i),
               static_cast<std::size_t>(piece.second + i), piece.element + i);
  };
  double sum = 0;
  each([&](const Piece&, int, std::size_t at, std::size_t, std::int64_t) { sum += e.gradients[at] * e.gradients[at]; });
  e.norm = std::sqrt(sum);
  e.coefficient = std::min(1.0, p.rule.clip / (e.norm + 1e-6));
  const double n = static_cast<double>(p.before.applied + 1), rate = kRate;
  each([&](const Piece&, int part, std::size_t at, std::size_t second, std::int64_t) {
    double& g = e.gradients[at];
    g *= e.coefficient;
    e.first[at] = 0.9 * e.first[at] + 0.1 * g;
    e.second[second] = (part == 0 ? 0.999 : 1) * e.second[second] + 0.001 * g * g;
  });
  each([&](const Piece& piece, int part, std::size_t at, std::size_t second, std::int64_t element) {
    const double below = std::sqrt(e.second[second]) / std::sqrt(1 - std::pow(0.999, n)) + 1e-8;
    double& value = e.parameters[at];
    value = value * (1 - rate * p.rule.weight_decay) - rate / (1 - std::pow(0.9, n)) * e.first[at] / below;
    if (p.rule.temperature > 0)
      value += std::sqrt(2 * p.rule.temperature * rate) / std::sqrt(std::max(below, 1e-3)) *
               noise(piece.stream + static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(n),
                     static_cast<std::uint64_t>(element));
    if (p.clears) e.gradients[at] = 0;
  });
  return e;
}

// `aligned`: arrays begin where 16 bytes may be taken at once. `blocks`: of the norm.
Result run(const Problem& p, Order order, bool aligned = true, std::int64_t blocks = 3) {
  const std::size_t alignment = aligned ? 16 : 4;
  const Buffer parameters(p.parameters, "parameters", alignment), gradients(p.gradients, "gradients", alignment),
      first(p.first, "first", alignment), second(p.second, "second", alignment);
  const GuardedBuffer<Piece> pieces(p.pieces);
  const Buffer rate(Floats{kRate}), loss(Floats{p.loss});
  const GuardedBuffer<std::int64_t> counts(Integers{p.before.applied, p.before.suppressed, p.before.in_a_row}),
      status(std::size_t{1});
  const GuardedBuffer<double> norm(std::size_t{1}), coefficient(std::size_t{1}),
      partial(static_cast<std::size_t>(blocks));
  const GuardedBuffer<unsigned> arrived(std::vector<unsigned>{0});
  const GuardedBuffer<Step> step(std::size_t{1}, "step", 16);
  const Arguments arguments{.pieces = pieces.data(),
                            .count = static_cast<std::int64_t>(p.pieces.size()),
                            .rule = p.rule,
                            .clears = p.clears,
                            .seed = kSeed,
                            .parameters = parameters.data(),
                            .gradients = gradients.data(),
                            .first_moment = first.data(),
                            .second_moment = second.data(),
                            .learning_rate = rate.data(),
                            .loss = loss.data(),
                            .counts = counts.data(),
                            .status = status.data(),
                            .norm = norm.data(),
                            .coefficient = coefficient.data(),
                            .partial = partial.data(),
                            .arrived = arrived.data(),
                            .step = step.data()};
  kernels::simt::run_clean(Norm{}, blocks, kThreads, order, arguments);
  EXPECT_EQ(arrived[0], 0u) << "the next launch begins at 0";
  if (p.rule.temperature > 0)
    kernels::simt::run_clean(NoisyUpdate{}, arguments.count, kThreads, order, arguments);
  else
    kernels::simt::run_clean(Update{}, arguments.count, kThreads, order, arguments);
  return {parameters.values(), gradients.values(), first.values(), second.values(),
          counts.values(),     status.values(),    norm.values(),  coefficient.values()};
}

void expect_equal_to_a_plain_loop(const Problem& p, bool aligned) {
  const Expected expected = plain_loop(p);
  for (const auto order : kernels::simt::kAllOrders) {
    const Result result = run(p, order, aligned);
    kernels::simt::expect_close(result.parameters, expected.parameters, 6e-7, "parameters");
    kernels::simt::expect_close(result.gradients, expected.gradients, 3e-8, "gradients");
    kernels::simt::expect_close(result.first, expected.first, 1e-8, "first moment");
    kernels::simt::expect_close(result.second, expected.second, 2e-10, "second moment");
    EXPECT_NEAR(result.norm[0], expected.norm, 1e-13 * expected.norm);
    EXPECT_NEAR(result.coefficient[0], expected.coefficient, 1e-13);
    EXPECT_EQ(result.counts, (Integers{5, 3, 0}));
    EXPECT_EQ(result.status, Integers{0});
  }
}

TEST(ComplexAdamwKernel, MatchesAPlainLoop) {
  expect_equal_to_a_plain_loop(Problem({{1, false}}), true);
  expect_equal_to_a_plain_loop(Problem({{5, false}, {7, true}, {3, false}}), true);
  expect_equal_to_a_plain_loop(Problem({{64, false}, {1028, true}, {-13, false}, {2050, false}}), true);
  expect_equal_to_a_plain_loop(Problem({{64, false}, {32, true}, {130, false}}), false);
}

TEST(ComplexAdamwKernel, KeepsClippedGradients) {
  Problem p({{65, false}, {1030, true}, {9, false}});
  p.clears = false;
  expect_equal_to_a_plain_loop(p, true);
}

TEST(ComplexAdamwKernel, AddsTheNoiseOfEachTensor) {
  Problem p({{66, false}, {1030, true}, {9, false}, {1200, false}});
  p.rule.temperature = 1e-4;
  p.second[0] = 0;
  p.first[0] = p.gradients[0] = 0;  // the floor
  expect_equal_to_a_plain_loop(p, true);
}

TEST(ComplexAdamwKernel, DrawsTheKnownNormals) {
  const FourNormals known = four_normals(1234, 0x1000, 0, 0);
  const float expected[] = {-0.53945453f, 0.02833640f, 0.09542130f, -0.02957743f};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(known.of[i], expected[i], 1e-7) << i;
  double worst = 0;
  for (std::uint64_t n = 0; n < 4000; ++n) {
    const double right = noise(0x2007, 9, n);
    const float got = four_normals(kSeed, 0x2007, 9, n / 4).of[n % 4];
    worst = std::max(worst, std::abs(got - right) / std::max(1.0, std::abs(right)));
  }
  EXPECT_LT(worst, 4e-7);
  // The smallest and the largest uniform: no infinity, and no 0 where the right value is 1.5e-5.
  EXPECT_NEAR(normal_radius(0), std::sqrt(-2 * std::log(0.5 * 0x1p-32)), 1e-6);
  EXPECT_NEAR(normal_radius(0xffffffffu), std::sqrt(-2 * std::log1p(-0.5 * 0x1p-32)), 1e-11);
}

TEST(ComplexAdamwKernel, SuppressesWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const bool clears : {true, false}) {
      Problem p({{65, false}, {70, true}, {9, false}});
      p.clears = clears;
      p.gradients[100] = bad;
      const Result result = run(p, Order::kShuffled);
      EXPECT_EQ(result.parameters, p.parameters);
      EXPECT_EQ(result.first, p.first);
      EXPECT_EQ(result.second, p.second);
      EXPECT_EQ(result.counts, (Integers{4, 4, 3}));
      EXPECT_EQ(result.status, Integers{2}) << "the third in a row";
      EXPECT_EQ(result.coefficient, Doubles{0});
      if (clears) {
        EXPECT_EQ(result.gradients, Floats(p.gradients.size(), 0.0f));
      }
    }
    Problem p({{65, false}});
    p.loss = bad;
    const Result result = run(p, Order::kReverse);
    EXPECT_EQ(result.parameters, p.parameters);
    EXPECT_EQ(result.counts, (Integers{4, 4, 3}));
    EXPECT_TRUE(std::isfinite(result.norm[0])) << "of the gradients alone";
  }
}

TEST(ComplexAdamwKernel, SquaresBeyondFloatsAreANormAllTheSame) {
  Problem p({{65, false}, {70, true}});
  for (float& g : p.gradients) g *= 1e25f;
  const Result result = run(p, Order::kForward);
  EXPECT_EQ(result.status, Integers{0});
  EXPECT_NEAR(result.norm[0] / plain_loop(p).norm, 1, 1e-13);
}

TEST(ComplexAdamwKernel, WithoutGradientNothingIsRead) {
  Problem p({{-40, false}});
  p.gradients.assign(40, std::numeric_limits<float>::quiet_NaN());
  const Result result = run(p, Order::kForward, true, 1);
  EXPECT_EQ(result.norm, Doubles{0});
  EXPECT_EQ(result.coefficient, Doubles{1});
  EXPECT_EQ(result.counts, (Integers{5, 3, 0}));
  EXPECT_EQ(result.parameters, p.parameters);
}

}  // namespace
}  // namespace twinbench::sem::complex_adamw
