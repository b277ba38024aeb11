// A timer whose signal makes a thread sleep for a moment.
#include "harness/parity/interruptions.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr long kWork_ns = 50'000, kRest_ns = 1'000;
timer_t g_timer;

void arm() {
  const itimerspec once{{0, 0}, {0, kWork_ns}};
  timer_settime(g_timer, 0, &once, nullptr);
}

// Armed again when the rest is over: a timer that goes on by itself is due again before a short sleep ends, which takes
// 50 us at least and milliseconds on a busy machine, and then nothing but the handler ever runs.
void rest(int) {
  const int error = errno;
  const timespec moment{0, kRest_ns};
  nanosleep(&moment, nullptr);
  arm();
  errno = error;
}

// From the program's start: its default is to end the process, and one on its way must not find that.
[[maybe_unused]] const auto kIgnored = std::signal(SIGRTMIN + 3, SIG_IGN);

}  // namespace

Interruptions::Interruptions() {
  struct sigaction action {};
  action.sa_handler = rest;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGRTMIN + 3, &action, &before_);
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGRTMIN + 3;
  if (timer_create(CLOCK_MONOTONIC, &event, &g_timer) != 0)
    throw Error(ErrorKind::kInputOutput, "timer", std::strerror(errno), "raise the limit of signals (ulimit -i)");
  arm();
}

Interruptions::~Interruptions() {
  sigaction(SIGRTMIN + 3, &before_, nullptr);  // ignores: what is on its way is dropped
  timer_delete(g_timer);
}

}  // namespace twinbench
