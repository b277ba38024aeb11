// Baselines of energy_flow.adaptive_stop: the host that reads two counts of every sample before every step, waiting for
// the device each time; and (`fixed_steps`) the loop that tests nothing and runs all of its steps.
#include <ATen/ATen.h>

#include <vector>

#include "src/component.h"

namespace twinbench::energy_flow::adaptive_stop {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        max_steps_(setting.size("decisions") - 1),
        min_steps_(static_cast<std::int64_t>(setting.option("min_steps"))),
        patience_(static_cast<std::int64_t>(setting.option("patience"))),
        threshold_(setting.option("threshold")),
        convergence_(setting.on("convergence")),
        fixed_(setting.on("fixed_steps")),
        samples_(static_cast<std::size_t>(setting.size("samples"))) {
    const at::Tensor words = at::empty(inputs["completed"].sizes(), inputs["completed"].options().dtype(at::kLong));
    const at::Tensor halves = words.view(at::kInt).unflatten(1, {-1, 2});
    active_half_ = halves.select(2, 0), completed_half_ = halves.select(2, 1);
    pairs_ = words.reshape({-1}).unbind(0);
  }

  void run() override {
    samples_.assign(samples_.size(), {});
    issued_ = 0;
    tell();
    if (fixed_) return run_all();
    for (std::size_t left = samples_.size(); left > 0; ++issued_) {
      for (std::size_t b = 0; b < samples_.size(); ++b)
        if (samples_[b].reason == 0 && test(b)) --left;
      if (left == 0) break;
    }
  }

  NamedTensors outputs() override {
    const auto column = [&](auto Sample::*field, at::ScalarType type) {
      const at::Tensor values = at::empty({static_cast<std::int64_t>(samples_.size())}, at::kLong);
      for (std::size_t b = 0; b < samples_.size(); ++b) values.mutable_data_ptr<std::int64_t>()[b] = samples_[b].*field;
      return values.to(inputs_["completed"].device(), type);
    };
    const auto number = [&](std::int64_t value) {
      return at::full({1}, value, at::kLong).to(inputs_["completed"].device());
    };
    return {{"steps", column(&Sample::steps, at::kInt)},
            {"reason", column(&Sample::reason, at::kInt)},
            {"best", column(&Sample::best, at::kInt)},
            {"stall", column(&Sample::stall, at::kInt)},
            {"flow_steps", column(&Sample::flow_steps, at::kLong)},
            {"steps_issued", number(issued_)},
            {"host_polls", number(0)}};
  }

 private:
  // reason: 1 exhausted, 2 max_steps, 3 threshold, 4 patience; 0 as long as it goes on.
  struct Sample {
    std::int64_t steps = 0, reason = 0, best = 0, stall = 0, flow_steps = 0;
  };

  // What is recorded, where the steps of a forward pass leave it: the device's counts in one word of eight bytes, the
  // completed above the active; and the host's own map, which knows those that were created, and which are active.
  void tell() {
    created_ = inputs_["created"].cpu().contiguous();
    if (fixed_) return;
    if (!convergence_) {
      active_ = inputs_["active"].cpu().contiguous();
      return;
    }
    completed_half_.copy_(inputs_["completed"]);
    active_half_.copy_(inputs_["active"]);
  }

  std::int64_t known(const at::Tensor& history, std::int64_t step, std::size_t b) const {
    return history.const_data_ptr<std::int32_t>()[static_cast<std::size_t>(step) * samples_.size() + b];
  }

  // Before step `issued_`. True where the sample finishes; else the step is executed, by all of its active flows.
  bool test(std::size_t b) {
    Sample& sample = samples_[b];
    std::int64_t completed = 0, active = 0;
    if (convergence_) {  // the sin: the host waits for eight bytes
      const auto pair = pairs_[static_cast<std::size_t>(issued_) * samples_.size() + b].item<std::int64_t>();
      completed = pair >> 32, active = pair & 0xffffffff;
    } else {
      active = known(active_, issued_, b);
    }
    sample.steps = issued_;
    sample.reason = reason(sample, completed, known(created_, issued_, b), active);
    if (sample.reason == 0) sample.flow_steps += active;
    return sample.reason != 0;
  }

  std::int64_t reason(Sample& sample, std::int64_t completed, std::int64_t created, std::int64_t active) const {
    if (active == 0) return 1;
    if (issued_ == max_steps_) return 2;
    if (!convergence_ || issued_ < min_steps_) return 0;
    if (static_cast<double>(completed) / static_cast<double>(created) >= threshold_) return 3;
    if (completed > sample.best) {
      sample.best = completed;
      sample.stall = 0;
    } else if (sample.best > 0 && ++sample.stall >= patience_) {
      return 4;
    }
    return 0;
  }

  // Every slot that a flow was placed in, in every step, whatever became of it.
  void run_all() {
    for (issued_ = 0; issued_ < max_steps_; ++issued_)
      for (std::size_t b = 0; b < samples_.size(); ++b) samples_[b].flow_steps += known(created_, 0, b);
    for (Sample& sample : samples_) sample.steps = max_steps_, sample.reason = 2;
  }

  const NamedTensors inputs_;
  const std::int64_t max_steps_, min_steps_, patience_;
  const double threshold_;
  const bool convergence_, fixed_;
  std::vector<Sample> samples_;
  std::int64_t issued_ = 0;
  std::vector<at::Tensor> pairs_;            // [max_steps + 1, samples], one tensor each
  at::Tensor created_, active_;              // on the host
  at::Tensor completed_half_, active_half_;  // int32 [max_steps + 1, samples], of those
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::adaptive_stop
