// A timer whose signal makes a thread sleep for a moment.
#include "harness/parity/interruptions.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr long kPeriod_ns = 50'000, kRest_ns = 1'000;

void rest(int) {
  const int error = errno;
  const timespec moment{0, kRest_ns};
  nanosleep(&moment, nullptr);
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
  if (timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0)
    throw Error(ErrorKind::kInputOutput, "timer", std::strerror(errno), "raise the limit of signals (ulimit -i)");
  const itimerspec period{{0, kPeriod_ns}, {0, kPeriod_ns}};
  timer_settime(timer_, 0, &period, nullptr);
}

Interruptions::~Interruptions() {
  timer_delete(timer_);
  sigaction(SIGRTMIN + 3, &before_, nullptr);  // ignores: what is on its way is dropped
}

}  // namespace twinbench
