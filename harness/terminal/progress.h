// How far a long run is: one line rewritten in place on a terminal, a plain line every few seconds in a log.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>

#include "harness/terminal/style.h"

namespace twinbench {

struct ProgressOptions {
  TerminalStyle style;
  double terminal_interval_s = 0.1;  // between rewrites
  double log_interval_s = 10;        // between lines of a log
  std::function<double()> seconds;   // a clock for tests; the steady clock where absent
};

// Not for use from several threads: it starts none itself, so that a process may still fork.
class Progress {
 public:
  // `out` must outlive this. A total of 0 is shown as a plain count.
  Progress(std::ostream& out, std::size_t total, ProgressOptions options);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows "[done/total] 12 s, about 30 s left  what" if it is time to; `what` is the item at hand.
  void update(std::size_t done, const std::string& what);

  // Writes a line that stays (a failure, a result), above the progress line.
  void print(const std::string& line);

  // Clears the line on a terminal; writes the last state in a log. Called by the destructor too.
  void finish();

 private:
  std::string line() const;
  void clear();

  std::ostream& out_;
  std::size_t total_, done_ = 0;
  ProgressOptions options_;
  double start_, shown_at_ = 0;
  std::string what_;
  bool ever_shown_ = false, visible_ = false, finished_ = false;
};

// "0.4 s", "12 s", "3 min 05 s", "2 h 10 min".
std::string duration_text(double seconds);

}  // namespace twinbench
