// Optimized energy_flow.gated_logging: a message of a category that is off costs one test of a bit; of the others only
// those that are due are made, from values that the metrics' copy brought. No operator, no allocation.
#include <ATen/ATen.h>

#include <stdexcept>

#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/log_gate.h"
#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::gated_logging {
namespace {

class Optimized final : public Runnable {
 public:
  Optimized(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        steps_(setting.size("steps")),
        messages_(setting.size("messages")),
        values_(given<float>(inputs_, "values")),
        fails_(given<bool>(inputs_, "fails")),
        category_(given<std::int64_t>(inputs_, "category")),
        advance_(given<std::int64_t>(inputs_, "advance")),
        limited_{static_cast<std::int64_t>(setting.option("first_n")),
                 static_cast<std::int64_t>(setting.option("every"))},
        basic_{0, static_cast<std::int64_t>(setting.option("log_interval"))},
        gate_(categories_of_profile(log_profiles()[static_cast<std::size_t>(setting.option("log_profile"))])) {
    for (std::int64_t m = 0; m < messages_; ++m) {
      category_name(category_[m]);  // refuses an unknown one
      keys_.push_back(message_key(m));
    }
    lines_.reserve(static_cast<std::size_t>(steps_ * messages_));
    reset();
  }

  void reset() override { gate_.restart(*inputs_["last_step"].const_data_ptr<std::int64_t>()); }

  void run() override {
    lines_.clear();
    std::int64_t latest = gate_.last_step();
    for (std::int64_t i = 0; i < steps_; ++i) {
      const std::int64_t step = advance_[i] == kStepMissing ? kStepMissing : latest += advance_[i];
      for (std::int64_t m = 0; m < messages_; ++m) {
        const std::int64_t call = i * messages_ + m;
        gate_.log(
            category_[m], step, category_[m] == kBasicMetrics ? basic_ : limited_,
            [&](LogLine& line) { write(line, call, m); },
            [&](std::string_view text) {
              lines_.push_back({call, {}, text.size()});
              std::memcpy(lines_.back().bytes, text.data(), text.size());
            });
      }
    }
    gate_.restart(latest);  // a step in which nothing was said counts, too
  }

  NamedTensors outputs() override {
    const at::Tensor emitted = at::zeros({steps_, messages_}, at::kBool);
    std::vector<std::string_view> texts;
    for (const Line& one : lines_) {
      texts.emplace_back(one.bytes, one.size);
      emitted.mutable_data_ptr<bool>()[one.call] = true;
    }
    const auto said = static_cast<std::int64_t>(lines_.size());
    NamedTensors outputs{{"emitted", emitted},
                         {"last_step", at::full({1}, gate_.last_step(), at::kLong)},
                         {"formatted", at::full({1}, said, at::kLong)}};
    set_texts(outputs, texts);
    return outputs;
  }

 private:
  struct Line {
    std::int64_t call;
    char bytes[kLineBytes];
    std::size_t size;
  };

  void write(LogLine& line, std::int64_t call, std::int64_t message) const {
    if (fails_[call]) throw std::runtime_error("no value of " + keys_[static_cast<std::size_t>(message)]);
    line << keys_[static_cast<std::size_t>(message)] << ": " << static_cast<double>(values_[call]);
  }

  NamedTensors inputs_;
  std::int64_t steps_, messages_;
  const float* values_;
  const bool* fails_;
  const std::int64_t *category_, *advance_;
  LogRate limited_, basic_;
  LogGate gate_;
  std::vector<std::string> keys_;
  std::vector<Line> lines_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Optimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::gated_logging
