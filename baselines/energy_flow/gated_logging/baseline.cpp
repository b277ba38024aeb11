// Baseline of energy_flow.gated_logging: every message of every step is made, with a read of its value; whether anybody
// wants it is asked afterwards.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "src/component.h"
#include "src/energy_flow/common/log_categories.h"
#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::gated_logging {
namespace {

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        categories_(categories_of_profile(log_profiles()[static_cast<std::size_t>(setting.option("log_profile"))])),
        by_level_(setting.on("level_threshold")),
        first_n_(static_cast<std::int64_t>(setting.option("first_n"))),
        every_(static_cast<std::int64_t>(setting.option("every"))),
        log_interval_(static_cast<std::int64_t>(setting.option("log_interval"))) {
    for (const std::int64_t id : integers("category")) category_name(id);  // refuses an unknown one
    Baseline::reset();
  }

  void reset() override { last_step_ = integers("last_step").front(); }

  void run() override {
    lines_.clear();
    formatted_ = 0;
    const auto categories = integers("category"), advance = integers("advance");
    const at::Tensor fails = inputs_["fails"].contiguous();
    std::int64_t latest = last_step_;
    for (std::size_t i = 0; i < advance.size(); ++i) {
      const std::int64_t step = advance[i] == kStepMissing ? kStepMissing : latest += advance[i];
      const at::Tensor values = inputs_["values"].select(0, static_cast<std::int64_t>(i));
      for (std::size_t m = 0; m < categories.size(); ++m) {
        const auto message = static_cast<std::int64_t>(m);
        const std::size_t call = i * categories.size() + m;
        const bool failing = fails.const_data_ptr<bool>()[call];
        const std::string text = "step " + std::to_string(step) + " " + category_name(categories[m]) + " " +
                                 made(message, values.select(0, message), failing);
        ++formatted_;
        if (!is_on(categories[m])) continue;
        if (step < last_step_) refuse_step(step, last_step_);
        last_step_ = step;
        if (is_due(categories[m], step)) lines_.emplace_back(call, text);
      }
    }
    last_step_ = latest;
  }

  NamedTensors outputs() override {
    const std::int64_t steps = inputs_["advance"].numel(), messages = inputs_["category"].numel();
    const at::Tensor emitted = at::zeros({steps, messages}, at::kBool);
    std::vector<std::string> texts;
    for (const auto& [call, text] : lines_) {
      texts.push_back(text.substr(0, static_cast<std::size_t>(kLineBytes)));
      emitted.mutable_data_ptr<bool>()[call] = true;
    }
    NamedTensors outputs{{"emitted", emitted},
                         {"last_step", at::full({1}, last_step_, at::kLong)},
                         {"formatted", at::full({1}, formatted_, at::kLong)}};
    set_texts(outputs, texts);
    return outputs;
  }

 private:
  static std::string made(std::int64_t message, const at::Tensor& value, bool failing) {
    try {
      char digits[32];
      std::snprintf(digits, sizeof digits, "%.6g", value.item<double>());
      if (failing) throw std::runtime_error("no value of " + message_key(message));
      return message_key(message) + ": " + digits;
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  // `by_level_`: the documents' way. Numbers from INFO on are then on, whatever the profile.
  bool is_on(std::int64_t category) const {
    if (by_level_) return category == kBasicMetrics || category >= kInfo;
    return std::find(categories_.begin(), categories_.end(), category) != categories_.end();
  }
  bool is_due(std::int64_t category, std::int64_t step) const {
    if (category == kBasicMetrics) return log_interval_ == 0 || step % log_interval_ == 0;
    if (first_n_ == 0 && every_ == 0) return true;
    return step < first_n_ || (every_ > 0 && step % every_ == 0);
  }

  std::vector<std::int64_t> integers(const char* name) const {
    const at::Tensor given = inputs_[name].contiguous();
    const auto* const first = given.const_data_ptr<std::int64_t>();
    return {first, first + given.numel()};
  }

  NamedTensors inputs_;
  std::vector<std::int64_t> categories_;
  bool by_level_;
  std::int64_t first_n_, every_, log_interval_;
  std::int64_t last_step_ = 0, formatted_ = 0;
  std::vector<std::pair<std::size_t, std::string>> lines_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::gated_logging
