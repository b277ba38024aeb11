// Gated logging (C28): whether a category is on is a bit, and nothing of a message exists before its gate has opened.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string_view>
#include <vector>

#include "src/energy_flow/common/log_categories.h"

namespace twinbench::energy_flow {

// How often a message is said: in the first `first_n` steps and in every `every`-th. Both 0: always.
struct LogRate {
  std::int64_t first_n = 0, every = 0;

  bool is_due(std::int64_t step) const {
    return (first_n == 0 && every == 0) || step < first_n || (every > 0 && step % every == 0);
  }
};

// One line, in memory of its own; what does not fit is left out.
class LogLine {
 public:
  void restart() { size_ = start_; }  // what was said of the step and the category stays
  void begin(std::int64_t step, std::string_view category) {
    size_ = 0;
    *this << "step " << step << ' ' << category << ' ';
    start_ = size_;
  }

  LogLine& operator<<(std::string_view text) {
    const std::size_t fits = std::min(text.size(), bytes_.size() - size_);
    std::memcpy(bytes_.data() + size_, text.data(), fits);
    size_ += fits;
    return *this;
  }
  LogLine& operator<<(char letter) { return *this << std::string_view(&letter, 1); }
  LogLine& operator<<(std::int64_t number) {
    std::array<char, 24> digits;
    return *this << written(digits, std::to_chars(digits.data(), digits.data() + digits.size(), number));
  }
  // Six significant digits, as "%.6g".
  LogLine& operator<<(double number) {
    std::array<char, 32> digits;
    return *this << written(digits, std::to_chars(digits.data(), digits.data() + digits.size(), number,
                                                  std::chars_format::general, 6));
  }

  std::string_view text() const { return {bytes_.data(), size_}; }

 private:
  template <class Digits>
  static std::string_view written(const Digits& digits, const std::to_chars_result& result) {
    return {digits.data(), static_cast<std::size_t>(result.ptr - digits.data())};
  }

  std::array<char, kLineBytes> bytes_;
  std::size_t size_ = 0, start_ = 0;
};

class LogGate {
 public:
  explicit LogGate(const std::vector<std::int64_t>& categories) {
    for (const std::int64_t id : categories) mask_ |= std::uint32_t{1} << id;
    for (const LogCategory& one : kLogCategories) names_[static_cast<std::size_t>(one.id)] = one.name;
  }

  bool is_on(std::int64_t category) const { return (mask_ >> (category & 31) & 1) != 0; }
  std::int64_t last_step() const { return last_step_; }
  void restart(std::int64_t last_step) { last_step_ = last_step; }

  // Where the category is on and the rate allows it, factory(line) says the rest and emit(text) gets the line. What
  // the factory throws is then the text. Throws kOutOfRange where the step is missing or falls.
  template <class Factory, class Emit>
  void log(std::int64_t category, std::int64_t step, const LogRate& rate, const Factory& factory, const Emit& emit) {
    if (is_on(category)) [[unlikely]]
      say(category, step, rate, factory, emit);
  }

 private:
  template <class Factory, class Emit>
  __attribute__((noinline)) void say(std::int64_t category, std::int64_t step, const LogRate& rate,
                                     const Factory& factory, const Emit& emit) {
    if (step < last_step_) refuse_step(step, last_step_);  // a missing step is below all
    last_step_ = step;
    if (!rate.is_due(step)) return;
    LogLine line;
    line.begin(step, names_[static_cast<std::size_t>(category & 31)]);
    try {
      factory(line);
    } catch (const std::exception& error) {
      line.restart();
      line << error.what();
    }
    emit(line.text());
  }

  std::uint32_t mask_ = 0;
  std::int64_t last_step_ = 0;
  std::array<const char*, 32> names_ = {};
};

}  // namespace twinbench::energy_flow
