// Run energy_flow.pressure: micro-steps whose buffers come from one pool, and whose sizes change half-way (C27).
#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "scenarios/runner/config.h"
#include "scenarios/runner/training_run.h"
#include "src/energy_flow/common/memory_pool.h"

namespace twinbench::energy_flow::pressure {
namespace {

// Of the first half's micro-steps, and of the second half's: no free block of the former serves the latter.
constexpr std::int64_t kSmall = 4096, kLarge = 6144;  // elements of a buffer

class PressureRun final : public TrainingRun {
 public:
  PressureRun(const ScenarioConfig& config, const RunSetting& setting)
      : trims_always_(setting.variant == Variant::kBaseline),
        type_(setting.dtype == Dtype::kFp64 ? at::kDouble : at::kFloat),
        micro_steps_(config.sizes.at("micro_steps")),
        buffers_(config.sizes.at("buffers")),
        pool_(capacity(config.options.at("budget_percent"))),
        results_(at::zeros({2 * micro_steps_}, type_)) {}

  void step() override {
    for (std::int64_t i = 0; i < 2 * micro_steps_; ++i) {
      results_[i] = micro_step(i < micro_steps_ ? kSmall : kLarge, i);
      if (trims_always_) pool_.trim();
    }
  }
  NamedTensors state() override { return {}; }
  void set_state(const NamedTensors&) override {}
  NamedTensors outputs() override { return {{"results", results_}}; }
  std::optional<std::int64_t> item_axis(const std::string&) const override { return std::nullopt; }
  std::int64_t items() const override { return 2 * micro_steps_; }
  Readings counters() override {
    const PoolCounts counts = pool_.counts();
    return {{"cache_trim", static_cast<double>(counts.cache_trim)},
            {"dev_alloc", static_cast<double>(counts.dev_alloc)},
            {"reserved_of_peak", static_cast<double>(counts.reserved) / static_cast<double>(counts.peak)}};
  }

 private:
  // In percent of the most that is live; 0: as many bytes as there are.
  std::int64_t capacity(double percent) const {
    const auto peak = static_cast<double>(buffers_ * kLarge) * static_cast<double>(c10::elementSize(type_));
    return static_cast<std::int64_t>(0.01 * percent * peak);
  }

  // A chain of buffers, all of them live until its end, each made of the one before.
  at::Tensor micro_step(std::int64_t elements, std::int64_t number) {
    std::vector<at::Tensor> chain;
    for (std::int64_t i = 0; i < buffers_; ++i) {
      chain.push_back(pool_.take({elements}, type_, "buffer"));
      if (i == 0)
        chain.back().fill_(0.1 + 0.01 * static_cast<double>(number));
      else
        at::sin_out(chain.back(), chain[static_cast<std::size_t>(i) - 1]).add_(0.25);
    }
    at::Tensor sum = at::zeros({}, type_);
    for (const at::Tensor& one : chain) sum.add_(one[0]);
    return sum;
  }

  const bool trims_always_;
  const at::ScalarType type_;
  const std::int64_t micro_steps_, buffers_;
  MemoryPool pool_;
  at::Tensor results_;
};

class PressureWorkload final : public Workload {
 public:
  explicit PressureWorkload(const ScenarioConfig& config) : config_(config) {}
  std::int64_t items() const override { return 2 * config_.sizes.at("micro_steps"); }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    return std::make_unique<PressureRun>(config_, setting);
  }

 private:
  ScenarioConfig config_;
};

std::unique_ptr<Workload> prepare(const ScenarioConfig& config) { return std::make_unique<PressureWorkload>(config); }

}  // namespace

RunSource make_source() {
  RunSource source;
  source.summary = "micro-steps whose buffers come from one pool with a budget, and change their size half-way";
  source.sizes = {count_key("micro_steps", 1, 10000, "of each half"), count_key("buffers", 2, 1000, "of a micro-step")};
  source.options = {count_key("budget_percent", 0, 100000, "of the most live bytes; 0: none").or_else(0)};
  source.components = {"energy_flow.memory_lifetime"};
  source.gives_state = false;
  source.step_tolerance = {Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"};
  source.prepare = prepare;
  return source;
}

}  // namespace twinbench::energy_flow::pressure
