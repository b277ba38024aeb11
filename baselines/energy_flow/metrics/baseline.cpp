// Baseline of energy_flow.metrics: after every micro-step all metrics are worked out, each from a read of its own, with
// the device brought to a stop around every timer.
#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "src/component.h"
#include "src/energy_flow/common/metric_table.h"

namespace twinbench::energy_flow::metrics {
namespace {

// What is added up over a window, on the host.
struct Sums {
  double rows = 0, finite_rows = 0, skipped = 0, flow_steps = 0, steps = 0, samples = 0, most_steps = 0;
  std::array<double, kLossKinds> loss = {};
  std::array<double, kStopReasons> reason = {};
  std::array<double, kStepBins> bin = {};
  std::array<double, kCountKinds> count = {};
  std::array<double, kTimingKinds> time = {};  // milliseconds
  double norm = 0, rate = 0, used = 0, reserved = 0, peak = 0, micro_steps = 0;
};

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        windows_(setting.size("windows")),
        micro_steps_(setting.size("micro_steps")),
        categories_(static_cast<std::int64_t>(setting.option("metric_categories"))),
        device_total_(setting.option("device_total")),
        slow_share_(setting.option("performance_threshold")),
        disables_(setting.on("auto_disable_on_slow")),
        // The host's own readings in the training loop; inputs here.
        clock_(here("clock")),
        timings_(here("timings")),
        memory_(here("memory")),
        device_(here("device")) {
    for (std::int64_t w = 0; w < windows_; ++w) clocks_.push_back(clock_of(clock_, w));
    Baseline::reset();
  }

  void reset() override {
    timing_rows_.clear(), memory_rows_.clear();
    const at::Tensor kept = here("kept"), timings = here("timing_ring"), memory = here("memory_ring");
    for (std::int64_t i = 0; i < at(kept, 0); ++i) timing_rows_.push_back({at(timings, 2 * i), at(timings, 2 * i + 1)});
    for (std::int64_t i = 0; i < at(kept, 1); ++i)
      memory_rows_.push_back({at(memory, 3 * i), at(memory, 3 * i + 1), at(memory, 3 * i + 2)});
    disabled_ = at(here("disabled"), 0) != 0;
  }

  void run() override {
    table_.assign(static_cast<std::size_t>(windows_), {});
    evaluated_ = 0;
    for (std::int64_t w = 0; w < windows_; ++w) {
      Sums sums;
      for (std::int64_t a = 0; a < micro_steps_; ++a) {
        add(sums, w, a);
        // The whole table anew, though only the window's last one is kept.
        table_[static_cast<std::size_t>(w)] = evaluated(sums, w);
        evaluated_ += kMetrics;
      }
      if (disabled_) table_[static_cast<std::size_t>(w)] = absent();
      disabled_ = disabled_ || (disables_ && clocks_[static_cast<std::size_t>(w)].is_slow(slow_share_));
    }
  }

  NamedTensors outputs() override {
    const at::Tensor metrics = at::full({windows_, kMetrics}, std::numeric_limits<double>::quiet_NaN(), at::kDouble),
                     present = at::zeros({windows_, kMetrics}, at::kBool),
                     timings = at::zeros({kTimingRing, kTimingKinds}, at::kLong),
                     memory = at::zeros({kMemoryRing, kMemoryKinds}, at::kLong);
    for (std::int64_t w = 0; w < windows_; ++w)
      for (std::int64_t metric = 0; metric < kMetrics; ++metric) {
        const std::optional<double>& value = table_[static_cast<std::size_t>(w)][static_cast<std::size_t>(metric)];
        if (!value || (categories_ & category_of(metric)) == 0) continue;
        metrics.mutable_data_ptr<double>()[w * kMetrics + metric] = *value;
        present.mutable_data_ptr<bool>()[w * kMetrics + metric] = true;
      }
    for (std::size_t i = 0; i < timing_rows_.size(); ++i)
      std::copy(timing_rows_[i].begin(), timing_rows_[i].end(),
                timings.mutable_data_ptr<std::int64_t>() + i * static_cast<std::size_t>(kTimingKinds));
    for (std::size_t i = 0; i < memory_rows_.size(); ++i)
      std::copy(memory_rows_[i].begin(), memory_rows_[i].end(),
                memory.mutable_data_ptr<std::int64_t>() + i * static_cast<std::size_t>(kMemoryKinds));
    const auto place = inputs_["losses"].options();
    const auto whole = [](std::initializer_list<std::int64_t> values) {
      return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong);
    };
    NamedTensors results{{"metrics", metrics},
                         {"present", present},
                         {"timing_ring", timings},
                         {"memory_ring", memory},
                         {"kept", whole({static_cast<std::int64_t>(timing_rows_.size()),
                                         static_cast<std::int64_t>(memory_rows_.size())})},
                         {"disabled", whole({disabled_ ? 1 : 0})},
                         {"evaluated", whole({evaluated_})}};
    for (auto& [name, tensor] : results) tensor = tensor.to(place.device());
    return results;
  }

 private:
  using Row = std::array<std::optional<double>, kMetrics>;

  static Row absent() { return {}; }
  static std::int64_t at(const at::Tensor& of, std::int64_t place) { return of.const_data_ptr<std::int64_t>()[place]; }
  at::Tensor here(const char* name) const { return inputs_[name].cpu().contiguous(); }
  at::Tensor of(const char* name, std::int64_t w, std::int64_t a) const {
    return inputs_[name].select(0, w).select(0, a);
  }
  static double read(const at::Tensor& value) { return value.item().toDouble(); }

  void stop_device() const {
    const c10::Device device = inputs_["losses"].device();
    if (device.is_cuda())  // one without an index is the first
      at::detail::getCUDAHooks().deviceSynchronize(std::max<c10::DeviceIndex>(device.index(), 0));
  }

  void add(Sums& sums, std::int64_t w, std::int64_t a) {
    for (std::int64_t kind = 0; kind < kTimingKinds; ++kind) {
      stop_device();
      sums.time[static_cast<std::size_t>(kind)] +=
          1e-6 * static_cast<double>(at(timings_, kTimingKinds * (w * micro_steps_ + a) + kind));
      stop_device();
    }
    const at::Tensor losses = of("losses", w, a), counts = of("counts", w, a), steps = of("sample_steps", w, a),
                     reason = of("reason", w, a);
    const double rows = read(of("rows", w, a)), total = read(losses.select(0, kLossKinds - 1));
    sums.rows += rows;
    sums.skipped += !std::isfinite(total);
    for (std::int64_t kind = 0; kind < kLossKinds; ++kind) {
      const double loss = kind == kLossKinds - 1 ? total : read(losses.select(0, kind));
      if (std::isfinite(total)) sums.loss[static_cast<std::size_t>(kind)] += rows * loss;
    }
    sums.finite_rows += std::isfinite(total) ? rows : 0;
    sums.flow_steps += read(at::sum(of("flow_steps", w, a)));
    sums.steps += read(at::sum(steps));
    sums.most_steps = std::max(sums.most_steps, read(at::max(steps)));
    sums.samples += static_cast<double>(steps.numel());
    for (std::int64_t i = 0; i < kStopReasons; ++i)
      sums.reason[static_cast<std::size_t>(i)] += read(at::sum(at::eq(reason, i + 1)));
    for (std::int64_t i = 0; i < kStepBins; ++i) {
      const double low = i == 0 ? -1e9 : std::exp2(i - 1), high = i == kStepBins - 1 ? 1e10 : std::exp2(i);
      sums.bin[static_cast<std::size_t>(i)] += read(at::sum(at::logical_and(at::gt(steps, low), at::le(steps, high))));
    }
    for (std::int64_t kind = 0; kind < kCountKinds; ++kind)
      sums.count[static_cast<std::size_t>(kind)] += read(counts.select(0, kind));
    sums.norm = read(inputs_["gradient_norm"].select(0, w));
    sums.rate = read(inputs_["learning_rate"].select(0, w));
    const std::int64_t place = kMemoryKinds * (w * micro_steps_ + a);
    sums.used = static_cast<double>(at(memory_, place));
    sums.reserved = static_cast<double>(at(memory_, place + 1));
    sums.peak = std::max(sums.peak, static_cast<double>(at(memory_, place + 2)));
    sums.micro_steps += 1;
    if (disabled_) return;
    const std::int64_t time = kTimingKinds * (w * micro_steps_ + a);
    timing_rows_.push_back({at(timings_, time), at(timings_, time + 1)});
    if (timing_rows_.size() > kTimingRing) timing_rows_.pop_front();
    memory_rows_.push_back({at(memory_, place), at(memory_, place + 1), at(memory_, place + 2)});
    if (memory_rows_.size() > kMemoryRing) memory_rows_.pop_front();
  }

  Row evaluated(const Sums& sums, std::int64_t w) const {
    Row row;
    const double seconds = clocks_[static_cast<std::size_t>(w)].seconds();
    const auto ratio = [](double of, double by) { return by > 0 ? std::optional(of / by) : std::nullopt; };
    row[kThroughput] = ratio(sums.rows, seconds);
    for (std::size_t i = 0; i < sums.loss.size(); ++i) row[kFirstLoss + i] = ratio(sums.loss[i], sums.finite_rows);
    row[kGradientNorm] = sums.norm;
    row[kLearningRate] = sums.rate;
    row[kSkippedMicro] = sums.skipped;
    row[kSkippedSteps] = std::isfinite(sums.norm) ? 0 : 1;
    row[kFlowRate] = ratio(1e3 * sums.flow_steps, sums.time[1]);
    row[kMeanSteps] = ratio(sums.steps, sums.samples);
    row[kMostSteps] = sums.most_steps;
    for (std::size_t i = 0; i < sums.reason.size(); ++i) row[kFirstReason + i] = sums.reason[i];
    for (std::size_t i = 0; i < sums.bin.size(); ++i) row[kFirstBin + i] = sums.bin[i];
    for (std::size_t i = 0; i + 1 < sums.count.size(); ++i) row[kGuardHits + i] = sums.count[i];
    row[kTokenRate] = ratio(sums.count.back(), seconds);
    row[kTextBridgeTime] = ratio(sums.time[0], sums.micro_steps);
    row[kEnergyTime] = ratio(sums.time[1], sums.micro_steps);
    row[kMemoryUsed] = sums.used;
    row[kMemoryReserved] = sums.reserved;
    row[kMemoryPeak] = sums.peak;
    row[kMemoryUtilization] = ratio(100 * sums.reserved, device_total_);
    if (at(device_, 2 * w) != kNotThere) row[kDeviceUtilization] = static_cast<double>(at(device_, 2 * w));
    if (at(device_, 2 * w + 1) != kNotThere)
      row[kBusyFraction] = ratio(static_cast<double>(at(device_, 2 * w + 1)) * 1e-9, seconds);
    return row;
  }

  NamedTensors inputs_;
  std::int64_t windows_, micro_steps_, categories_;
  double device_total_, slow_share_;
  bool disables_;
  at::Tensor clock_, timings_, memory_, device_;
  std::vector<WindowClock> clocks_;
  std::deque<std::array<std::int64_t, kTimingKinds>> timing_rows_;
  std::deque<std::array<std::int64_t, kMemoryKinds>> memory_rows_;
  bool disabled_ = false;
  std::vector<Row> table_;
  std::int64_t evaluated_ = 0;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::metrics
