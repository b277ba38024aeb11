// The record's kernel on the host executor, in every thread order, against plain sums: a window of several micro-steps,
// one of which has no number for a loss; what is published, and when the host may see it; bins by name.
#include "kernels/energy_flow/metrics/kernel.h"

#include "harness/simt/access_observer.h"
#include "harness/simt/kernel_testing.h"

#include <array>
#include <limits>

namespace twinbench::energy_flow::metrics {
namespace {

using simt::GuardedBuffer;
using simt::Order;

constexpr std::int64_t kMicroSteps = 3, kNumber = 77;
constexpr std::int64_t kStale = 12345;  // what a slot holds that nothing has written

struct Window {
  explicit Window(std::int64_t samples)
      : samples(samples),
        steps(kMicroSteps * samples),
        reason(kMicroSteps * samples),
        flow_steps(kMicroSteps * samples) {
    for (std::int64_t i = 0; i < kMicroSteps * samples; ++i) {
      steps[i] = static_cast<std::int32_t>(i * 37 % 100);
      reason[i] = static_cast<std::int32_t>(i % 5);  // 0 is none
      flow_steps[i] = (std::int64_t{1} << 33) + i;
    }
    for (std::int64_t i = 0; i < 5 * kMicroSteps; ++i) {
      losses[i] = 0.25f * static_cast<float>(i + 1);
      counts[i] = 10 * i;
    }
    losses[9] = std::numeric_limits<float>::infinity();  // the second micro-step's total
  }

  void run(Order order) {
    for (std::int64_t a = 0; a < kMicroSteps; ++a) {
      const bool is_last = a == kMicroSteps - 1;
      simt::run_clean(MicroStepRecord{}, 1, kRecordThreads, order,
                      RecordArguments{.step = {.losses = losses.data() + 5 * a,
                                               .rows = rows.data() + a,
                                               .steps = steps.data() + a * samples,
                                               .reason = reason.data() + a * samples,
                                               .flow_steps = flow_steps.data() + a * samples,
                                               .counts = counts.data() + 5 * a,
                                               .samples = samples,
                                               .norm = is_last ? norm.data() : nullptr,
                                               .rate = is_last ? rate.data() : nullptr},
                                      .is_first = a == 0,
                                      .record = record.data(),
                                      .published = is_last ? published.data() : nullptr,
                                      .sequence = is_last ? sequence.data() : nullptr,
                                      .number = is_last ? kNumber : 0});
      if (!is_last) {
        ASSERT_EQ(sequence[0], 0) << "published too early";
      }
    }
  }

  std::int64_t whole(int slot) const { return published[0].slot[slot].whole; }
  double real(int slot) const { return published[0].slot[slot].real; }

  std::int64_t samples;
  GuardedBuffer<std::int32_t> steps, reason;
  GuardedBuffer<std::int64_t> flow_steps, rows{std::vector<std::int64_t>{4, 9, 3}}, counts{5 * kMicroSteps},
      sequence{std::vector<std::int64_t>{0}};
  simt::Buffer losses{5 * kMicroSteps};
  GuardedBuffer<double> norm{std::vector<double>{0.5}}, rate{std::vector<double>{2.5e-5}};
  // What is left from the window before must not be seen.
  GuardedBuffer<MetricRecord> record{std::vector<MetricRecord>(1, stale())}, published{1};

 private:
  static MetricRecord stale() {
    MetricRecord record;
    for (RecordValue& value : record.slot) value.whole = kStale;
    return record;
  }
};

class MetricsKernel : public testing::TestWithParam<std::int64_t> {};

TEST_P(MetricsKernel, AddsUpAWindowAndPublishesIt) {
  for (const Order order : simt::kAllOrders) {
    Window w(GetParam());
    w.run(order);
    const std::int64_t all = kMicroSteps * GetParam();
    std::int64_t flow_steps = 0, steps = 0, most = 0;
    std::array<std::int64_t, 8> bins = {};
    std::array<std::int64_t, 5> reasons = {};
    for (std::int64_t i = 0; i < all; ++i) {
      flow_steps += w.flow_steps[i];
      steps += w.steps[i];
      most = std::max<std::int64_t>(most, w.steps[i]);
      ++bins[static_cast<std::size_t>(w.steps[i] <= 1 ? 0 : std::min(7.0, std::ceil(std::log2(w.steps[i]))))];
      ++reasons[static_cast<std::size_t>(w.reason[i])];
    }
    ASSERT_EQ(w.sequence[0], kNumber);
    ASSERT_EQ(w.whole(kSlotMicroSteps), 3);
    ASSERT_EQ(w.whole(kSlotRows), 16);
    ASSERT_EQ(w.whole(kSlotSkipped), 1);
    ASSERT_EQ(w.whole(kSlotFiniteRows), 7);
    ASSERT_EQ(w.whole(kSlotSamples), all);
    ASSERT_EQ(w.whole(kSlotFlowSteps), flow_steps);
    ASSERT_EQ(w.whole(kSlotSteps), steps);
    ASSERT_EQ(w.whole(kSlotMostSteps), most);
    for (int i = 0; i < 8; ++i) ASSERT_EQ(w.whole(kSlotBin + i), bins[static_cast<std::size_t>(i)]) << i;
    for (int i = 0; i < 4; ++i) ASSERT_EQ(w.whole(kSlotReason + i), reasons[static_cast<std::size_t>(i) + 1]) << i;
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(w.whole(kSlotCount + i), 10 * (i + (5 + i) + (10 + i)));
      ASSERT_EQ(w.real(kSlotLoss + i), 4 * 0.25 * (i + 1) + 3 * 0.25 * (i + 11)) << "the second one is skipped";
    }
    ASSERT_EQ(w.real(kSlotNorm), 0.5);
    ASSERT_EQ(w.real(kSlotRate), 2.5e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, MetricsKernel, testing::Values(1, 7, 8, 33),
                         [](const auto& info) { return std::to_string(info.param); });

// Looks at the memory that the host sees whenever a lane orders what it wrote before what is written after.
class AtFences final : public kernels::simt::AccessObserver {
 public:
  explicit AtFences(const Window& window) : window_(window) {}

  void fence() override {
    if (lane_ < 0) return;
    published_ = published_ && window_.whole(lane_) != kStale;
    early_ = early_ || window_.sequence[0] == kNumber;
    lanes_ |= std::uint32_t{1} << lane_;
  }
  void begin_thread(const kernels::simt::HostThread& thread) override { lane_ = thread.rank; }
  void pause_thread() override { lane_ = -1; }
  bool takes_block(std::int64_t) override { return true; }
  void begin_launch(const kernels::simt::Executor&) override {}
  void begin_block(std::int64_t) override {}
  void meet_warp(int) override {}
  void pass_barrier() override {}
  void pass_team_barrier(std::int64_t, std::int64_t) override {}
  void end_block() override {}
  void end_launch(kernels::simt::Report&) override {}
  void touch_global(const void*, const void*, std::uint32_t, kernels::simt::Access) override {}
  void touch_shared(const void*, const kernels::simt::SharedRegion&, std::int64_t, std::uint32_t,
                    kernels::simt::Access) override {}

  std::uint32_t lanes() const { return lanes_; }
  bool published() const { return published_; }
  bool early() const { return early_; }

 private:
  const Window& window_;
  int lane_ = -1;
  std::uint32_t lanes_ = 0;
  bool published_ = true, early_ = false;
};

TEST(MetricsKernel, TheHostSeesTheRecordBeforeItsNumber) {
  for (const Order order : simt::kAllOrders) {
    Window w(7);
    for (RecordValue& value : w.published[0].slot) value.whole = kStale;
    AtFences fences(w);
    {
      const kernels::simt::WatchLaunches watch(fences);
      w.run(order);
    }
    EXPECT_EQ(fences.lanes(), 0xffffffffu) << "a lane does not order its slot before the number";
    EXPECT_TRUE(fences.published()) << "a lane's slot is written after its fence";
    EXPECT_FALSE(fences.early()) << "the number is there before all lanes have ordered their slots";
  }
}

TEST(MetricsKernel, BinsByName) {
  const std::int32_t steps[] = {0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 65535};
  const int bins[] = {0, 0, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
  for (std::size_t i = 0; i < std::size(steps); ++i) EXPECT_EQ(step_bin(steps[i]), bins[i]) << steps[i];
}

}  // namespace
}  // namespace twinbench::energy_flow::metrics
