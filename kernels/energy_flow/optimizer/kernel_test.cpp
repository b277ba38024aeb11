// energy_flow.optimizer's kernels on the host executor, in every thread order, against a plain loop in fp64.
#include "kernels/energy_flow/optimizer/kernel.h"

#include <limits>
#include <optional>

#include "harness/simt/kernel_testing.h"

namespace twinbench::energy_flow::optimizer {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;
using kernels::simt::Order;
using kernels::simt::spread;
using Doubles = std::vector<double>;
using Integers = std::vector<std::int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

// Stretches of these lengths, cut into pieces of a thousand; a length below 0: without a gradient.
struct Problem {
  Rule rule{.clip = 0.1, .weight_decay = 3};
  bool clears = true;
  Window window{1, 4};
  Counts before{4, 3, 2};
  Schedule schedule{0.01, 2};
  std::optional<double> epoch_loss = {};
  std::vector<Piece> pieces{};
  Floats parameters{}, gradients{}, first{}, second{};

  explicit Problem(const Integers& lengths) {
    std::int64_t elements = 0;
    for (const std::int64_t length : lengths) {
      const std::int64_t count = std::abs(length);
      for (std::int64_t at = 0; length > 0 && at < count; at += 1000)
        pieces.push_back({.first = elements + at,
                          .count = static_cast<std::int32_t>(std::min<std::int64_t>(1000, count - at)),
                          .unused = 0});
      elements += count;
    }
    parameters = spread(elements, 1);
    gradients = spread(elements, 2, 0.2f);
    first = spread(elements, 3, 0.01f);
    second = spread(elements, 4, 5e-4f);
    for (float& value : second) value += 6e-4f;
  }
};

struct Result {
  Floats parameters, gradients, first, second;
  Integers counts, status;
  Doubles norm, coefficient, learning_rate, schedule;
};

Result run(const Problem& p, Order order, bool aligned = true, std::int64_t blocks = 3) {
  const std::size_t alignment = aligned ? 16 : 4;
  const Buffer parameters(p.parameters, "parameters", alignment), gradients(p.gradients, "gradients", alignment),
      first(p.first, "first", alignment), second(p.second, "second", alignment);
  const GuardedBuffer<Piece> pieces(p.pieces);
  const Buffer factor(Floats{p.window.factor});
  const GuardedBuffer<std::int64_t> micro_steps(Integers{p.window.micro_steps}), status(std::size_t{1}),
      counts(Integers{p.before.applied, p.before.skipped, p.before.bad_epochs});
  const GuardedBuffer<double> norm(std::size_t{1}), coefficient(std::size_t{1}), learning_rate(std::size_t{1}),
      epoch_loss(Doubles{p.epoch_loss.value_or(0)}), schedule(Doubles{p.schedule.rate, p.schedule.best}),
      partial(static_cast<std::size_t>(blocks));
  const GuardedBuffer<unsigned> arrived(std::vector<unsigned>{0});
  const GuardedBuffer<Step> step(std::size_t{1}, "step", 16);
  const Arguments arguments{.pieces = pieces.data(),
                            .count = static_cast<std::int64_t>(p.pieces.size()),
                            .rule = p.rule,
                            .clears = p.clears,
                            .parameters = parameters.data(),
                            .gradients = gradients.data(),
                            .first_moment = first.data(),
                            .second_moment = second.data(),
                            .factor = factor.data(),
                            .micro_steps = micro_steps.data(),
                            .epoch_loss = p.epoch_loss ? epoch_loss.data() : nullptr,
                            .schedule = schedule.data(),
                            .counts = counts.data(),
                            .status = status.data(),
                            .norm = norm.data(),
                            .coefficient = coefficient.data(),
                            .learning_rate = learning_rate.data(),
                            .partial = partial.data(),
                            .arrived = arrived.data(),
                            .step = step.data()};
  kernels::simt::run_clean(Norm{}, blocks, kThreads, order, arguments);
  EXPECT_EQ(arrived[0], 0u) << "the next launch begins at 0";
  kernels::simt::run_clean(Update{}, arguments.count, kThreads, order, arguments);
  return {parameters.values(), gradients.values(), first.values(),       second.values(),        counts.values(),
          status.values(),     norm.values(),      coefficient.values(), learning_rate.values(), schedule.values()};
}

void expect_equal_to_a_plain_loop(const Problem& p, bool aligned) {
  Doubles parameters(p.parameters.begin(), p.parameters.end()), gradients(p.gradients.begin(), p.gradients.end()),
      first(p.first.begin(), p.first.end()), second(p.second.begin(), p.second.end());
  const auto each = [&](const auto& body) {
    for (const Piece& piece : p.pieces)
      for (int i = 0; i < piece.count; ++i) body(static_cast<std::size_t>(piece.first + i));
  };
  double sum = 0;
  each([&](std::size_t at) {
    gradients[at] *= p.window.factor;
    sum += gradients[at] * gradients[at];
  });
  const double norm = std::sqrt(sum), coefficient = p.rule.clip > 0 ? std::min(1.0, p.rule.clip / (norm + 1e-6)) : 1;
  const double n = static_cast<double>(p.before.applied + 1), rate = p.schedule.rate;
  each([&](std::size_t at) {
    double& g = gradients[at];
    g *= coefficient;
    first[at] = 0.9 * first[at] + 0.1 * g;
    second[at] = 0.999 * second[at] + 0.001 * g * g;
    const double below = std::sqrt(second[at] / (1 - std::pow(0.999, n))) + 1e-8;
    parameters[at] =
        parameters[at] * (1 - rate * p.rule.weight_decay) - rate * first[at] / (1 - std::pow(0.9, n)) / below;
    if (p.clears) g = 0;
  });
  for (const auto order : kernels::simt::kAllOrders) {
    const Result result = run(p, order, aligned);
    kernels::simt::expect_close(result.parameters, parameters, 6e-7, "parameters");
    kernels::simt::expect_close(result.gradients, gradients, 3e-8, "gradients");
    kernels::simt::expect_close(result.first, first, 1e-8, "first moment");
    kernels::simt::expect_close(result.second, second, 2e-10, "second moment");
    EXPECT_NEAR(result.norm[0], norm, 1e-13 * norm);
    EXPECT_NEAR(result.coefficient[0], coefficient, 1e-13);
    EXPECT_EQ(result.counts, (Integers{5, 3, 2}));
    EXPECT_EQ(result.status, Integers{0});
    EXPECT_EQ(result.learning_rate, Doubles{0.01});
    EXPECT_EQ(result.schedule, (Doubles{0.01, 2}));
  }
}

TEST(OptimizerKernel, MatchesAPlainLoop) {
  expect_equal_to_a_plain_loop(Problem({1}), true);
  expect_equal_to_a_plain_loop(Problem({5, -3, 7, 3}), true);
  expect_equal_to_a_plain_loop(Problem({64, 1028, -13, 2050}), true);
  expect_equal_to_a_plain_loop(Problem({64, -1, 131}), false);
}

TEST(OptimizerKernel, KeepsClippedGradientsTimesTheirFactor) {
  for (const double clip : {0.1, 1e9, 0.0, -1.0}) {
    Problem p({65, -2, 1030});
    p.clears = false;
    p.rule.clip = clip;
    p.window.factor = 4.0f / 3;
    expect_equal_to_a_plain_loop(p, true);
  }
}

void expect_nothing_moved(const Problem& p, const Result& result) {
  EXPECT_EQ(result.parameters, p.parameters);
  EXPECT_EQ(result.first, p.first);
  EXPECT_EQ(result.second, p.second);
  EXPECT_EQ(result.gradients, Floats(p.gradients.size(), 0.0f)) << "discarded, all of them";
  EXPECT_EQ(result.coefficient, Doubles{0});
}

TEST(OptimizerKernel, DiscardsWhatIsNotFinite) {
  for (const float bad : {kNan, -kInfinity})
    for (const bool clears : {true, false}) {
      Problem p({65, 149});
      p.clears = clears;
      p.gradients[100] = bad;
      const Result result = run(p, Order::kShuffled);
      expect_nothing_moved(p, result);
      EXPECT_EQ(result.counts, (Integers{4, 4, 2}));
      EXPECT_EQ(result.status, Integers{kWasNotFinite});
    }
}

TEST(OptimizerKernel, AWindowWithoutAMicroStepIsNoUpdate) {
  Problem p({65, 149});
  p.window.micro_steps = 0;
  const Result result = run(p, Order::kReverse);
  expect_nothing_moved(p, result);
  EXPECT_EQ(result.counts, (Integers{4, 3, 2}));
  EXPECT_EQ(result.status, Integers{kHadNothing});
}

TEST(OptimizerKernel, SquaresBeyondFloatsAreANormAllTheSame) {
  Problem p({65, 149});
  for (float& g : p.gradients) g *= 1e25f;
  const Result result = run(p, Order::kForward);
  EXPECT_EQ(result.status, Integers{kWasApplied});
  EXPECT_GT(result.norm[0], 1e24);
}

TEST(OptimizerKernel, WithoutGradientNothingIsRead) {
  Problem p({-40});
  p.gradients.assign(40, kNan);
  const Result result = run(p, Order::kForward, true, 1);
  EXPECT_EQ(result.norm, Doubles{0});
  EXPECT_EQ(result.coefficient, Doubles{1});
  EXPECT_EQ(result.counts, (Integers{5, 3, 2}));
  EXPECT_EQ(result.parameters, p.parameters);
}

// State and loss before; bad epochs, rate and best loss after.
struct EpochEnd {
  std::int64_t bad_epochs;
  double rate, loss;
  std::int64_t bad_after;
  double rate_after, best_after;
};

TEST(OptimizerKernel, APlateauLowersTheRateOfTheNextWindow) {
  for (const auto& e : {EpochEnd{9, 2e-5, 2, 10, 2e-5, 2}, EpochEnd{10, 2e-5, 2, 0, 1e-5, 2},
                        EpochEnd{10, 1.5e-6, 3, 0, 1e-6, 2}, EpochEnd{10, 1e-6, 3, 0, 1e-6, 2},
                        EpochEnd{10, 2e-5, 1.9997, 0, 2e-5, 1.9997}, EpochEnd{3, 2e-5, 1.9999, 4, 2e-5, 2},
                        EpochEnd{10, 2e-5, kNan, 10, 2e-5, 2}, EpochEnd{10, 2e-5, -kInfinity, 10, 2e-5, 2}}) {
    Problem p({9});
    p.before.bad_epochs = e.bad_epochs;
    p.schedule.rate = e.rate;
    p.epoch_loss = e.loss;
    const Result result = run(p, Order::kForward, true, 1);
    EXPECT_EQ(result.counts, (Integers{5, 3, e.bad_after})) << e.loss;
    EXPECT_EQ(result.schedule, (Doubles{e.rate_after, e.best_after})) << e.loss;
    EXPECT_EQ(result.learning_rate, Doubles{e.rate}) << "the window that ends the epoch has the rate from before";
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::optimizer
