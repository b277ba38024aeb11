// A WindowRun of a few numbers with planted mistakes: what accumulation, memory budget and data parallel are tested on.
#pragma once

#include <unistd.h>

#include "scenarios/runner/fake_run.h"
#include "scenarios/runner/observe.h"

namespace twinbench::fake {

// Mistakes of the optimized run. The baseline keeps every micro-batch's tape until the window ends, and reads back.
struct WindowPlan {
  bool own_rows = false;          // a micro-batch divides by its own rows: summed where it should be averaged
  bool keeps_tape = false;        // memory kept across micro-batches
  bool leaks = false;             // memory kept for ever
  bool grows_dispatches = false;  // every micro-batch costs an operator more than the one before
  bool forgets_first = false;     // the first micro-batch's gradients are lost where there is a second
  bool second_rank_drifts = false, second_rank_dies = false, second_rank_hangs = false, second_rank_throws = false;
  bool grows_gradients = false;  // one parameter more to reduce in every window
  bool baseline_is_clean = false;
};
inline WindowPlan window_plan;

// loss = mean over rows of |weight * x - 1|^2 / 2: two parameters of three numbers, a tape of 1000 numbers a row.
class FakeWindow final : public WindowRun {
 public:
  FakeWindow(std::int64_t rows, const RunSetting& setting) : setting_(setting) {
    const auto options = at::TensorOptions().dtype(setting.dtype == Dtype::kFp64 ? at::kDouble : at::kFloat);
    x_ = at::arange(1, rows * 3 + 1, options).reshape({rows, 3}).mul_(1.0 / static_cast<double>(rows * 3));
    for (const char* name : {"weight", "shift"}) {
      parameters_.set(name, at::full({3}, 0.25, options));
      gradients_.set(name, at::zeros({3}, options));
    }
  }
  void begin_window() override {
    for (const auto& [name, tensor] : gradients_) tensor.zero_();
    micro_steps_ = 0;
    if (window_plan.grows_gradients && begun_++ > 0 && setting_.variant != Variant::kBaseline)
      gradients_.set("more_" + std::to_string(begun_), at::zeros({3}, x_.options()));
  }
  void micro_step(std::int64_t begin, std::int64_t count) override {
    if (count == 0) return;
    const bool baseline = setting_.variant == Variant::kBaseline;
    const auto planted = baseline ? WindowPlan{} : window_plan;
    second_rank_ |= begin > 0 && micro_steps_ == 0;
    ++micro_steps_;
    if (second_rank_ && planted.second_rank_dies) _exit(7);
    if (second_rank_ && planted.second_rank_hangs) pause();
    if (second_rank_ && planted.second_rank_throws) throw Error(ErrorKind::kNonFinite, "loss", "nan", "planted");
    const auto tape = at::zeros({count, 1000}, x_.options());
    if (baseline ? !window_plan.baseline_is_clean : planted.keeps_tape || planted.leaks) kept_.push_back(tape);
    const auto x = x_.narrow(0, begin, count);
    const auto error = x * parameters_["weight"] + parameters_["shift"] - 1;
    const double weight = 1 / static_cast<double>(planted.own_rows ? count : items());
    if (planted.forgets_first && micro_steps_ == 2)
      for (const auto& [name, tensor] : gradients_) tensor.zero_();
    gradients_["weight"].add_((error * x).sum(0), weight);
    gradients_["shift"].add_(error.sum(0), weight);
    for (int i = 0; planted.grows_dispatches && i < micro_steps_; ++i) tape.add_(1);
  }
  void finish_window() override {
    for (const auto& [name, tensor] : parameters_) tensor.sub_(gradients_[name], 0.1);
    if (second_rank_ && setting_.variant != Variant::kBaseline && window_plan.second_rank_drifts)
      parameters_["shift"].add_(1e-6);
    if (!window_plan.leaks || setting_.variant == Variant::kBaseline) kept_.clear();
  }
  NamedTensors gradients() override { return gradients_; }
  NamedTensors parameters() override { return parameters_; }
  NamedTensors state() override { return copies_of(parameters_); }
  void set_state(const NamedTensors& state) override {
    for (const auto& [name, tensor] : state) parameters_[name].copy_(tensor);
  }
  NamedTensors outputs() override { return parameters_; }
  std::optional<std::int64_t> item_axis(const std::string&) const override { return std::nullopt; }
  std::int64_t items() const override { return x_.size(0); }

 private:
  RunSetting setting_;
  at::Tensor x_;
  NamedTensors parameters_, gradients_;
  std::vector<at::Tensor> kept_;
  std::int64_t micro_steps_ = 0, begun_ = 0;
  bool second_rank_ = false;
};

class FakeWindowWorkload final : public Workload {
 public:
  explicit FakeWindowWorkload(std::int64_t rows) : rows_(rows) {}
  std::int64_t items() const override { return rows_; }
  std::unique_ptr<TrainingRun> make(const RunSetting& setting) const override {
    return std::make_unique<FakeWindow>(rows_, setting);
  }

 private:
  std::int64_t rows_;
};

inline std::unique_ptr<Workload> prepare_windows(const ScenarioConfig& config) {
  return std::make_unique<FakeWindowWorkload>(config.sizes.at("items"));
}

// The fake catalogue and the run "energy_flow.fake_windows".
inline Catalogue window_catalogue() {
  auto all = fake_catalogue();
  auto source = all.runs.front();
  source.name = "fake_windows";
  source.gives_windows = true;
  source.prepare = prepare_windows;
  all.runs.push_back(source);
  return all;
}

inline std::string window_scenario(const std::string& kind, const std::string& lines,
                                   const std::vector<std::string>& criteria) {
  auto text = scenario(kind, lines, criteria);
  return text.replace(text.find("energy_flow.fake"), 16, "energy_flow.fake_windows");
}

inline nlohmann::json run_windows(const std::string& text, const WindowPlan& planted = {}) {
  struct Restore {
    ~Restore() { window_plan = {}; }
  } restore;
  window_plan = planted;
  const auto all = window_catalogue();
  return run_scenario(read(text, all), all, c10::Device(c10::DeviceType::CPU), true);
}

}  // namespace twinbench::fake
