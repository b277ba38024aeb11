// The progress line and its pace.
#include "harness/terminal/progress.h"

#include <chrono>
#include <cstdio>
#include <utility>

namespace twinbench {
namespace {

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string duration_text(double seconds) {
  char text[48];
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (seconds < 9.95)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else if (whole < 60)
    std::snprintf(text, sizeof text, "%lld s", whole);
  else if (whole < 3600)
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole % 3600 / 60);
  return text;
}

Progress::Progress(std::ostream& out, std::size_t total, ProgressOptions options)
    : out_(out), total_(total), options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = steady_seconds;
  start_ = options_.seconds();
}

Progress::~Progress() { finish(); }

std::string Progress::line() const {
  const double elapsed = options_.seconds() - start_;
  std::string text =
      "[" + std::to_string(done_) + (total_ > 0 ? "/" + std::to_string(total_) : "") + "] " + duration_text(elapsed);
  // The rest is guessed from the mean so far; before a twentieth is done the guess would only mislead.
  if (done_ > 0 && done_ < total_ && 20 * done_ >= total_)
    text += ", about " + duration_text(elapsed / static_cast<double>(done_) * static_cast<double>(total_ - done_)) +
            " left";
  if (!what_.empty()) text += "  " + what_;
  return text;
}

void Progress::clear() {
  if (visible_) out_ << "\r\033[K";
  visible_ = false;
}

void Progress::update(std::size_t done, const std::string& what) {
  done_ = done;
  what_ = what;
  const double now = options_.seconds();
  const double interval = options_.style.is_terminal ? options_.terminal_interval_s : options_.log_interval_s;
  if (ever_shown_ && now - shown_at_ < interval) return;
  ever_shown_ = true;
  shown_at_ = now;
  if (options_.style.is_terminal) {
    // One column stays free: a line that fills the last one wraps on some terminals and could not be rewritten.
    out_ << "\r" << clipped(line(), options_.style.width > 1 ? options_.style.width - 1 : 1) << "\033[K";
    visible_ = true;
  } else {
    out_ << line() << "\n";
  }
  out_.flush();
}

void Progress::print(const std::string& text) {
  clear();
  out_ << text << "\n";
  out_.flush();
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  clear();
  if (!options_.style.is_terminal && ever_shown_) {
    what_.clear();
    out_ << line() << "\n";
  }
  out_.flush();
}

}  // namespace twinbench
