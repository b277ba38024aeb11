// A flag that signal handlers set.
#include "harness/runner/interruption_watch.h"

#include <unistd.h>

#include <iterator>

#include "src/formats/temporary_paths.h"

namespace twinbench {
namespace {

volatile sig_atomic_t noted = 0;        // a signal handler can reach nothing else
volatile sig_atomic_t job_is_here = 0;  // it runs in this process: nothing but the process can be ended
int watches = 0;

extern "C" void note_interruption(int signal) {
  noted = signal;
  if (job_is_here) alarm(1);
}

extern "C" void end_with_job(int) {
  constexpr char kTold[] =
      "interrupted: the job in this process did not end within a second, what was measured is lost\n";
  const auto written = write(STDERR_FILENO, kTold, sizeof kTold - 1);
  static_cast<void>(written);  // where nobody listens, the signal says it
  remove_temporary_paths();
  signal(noted, SIG_DFL);
  raise(noted);
}

}  // namespace

InterruptionWatch::InterruptionWatch() {
  if (watches++ == 0) noted = 0;
  struct sigaction action {};
  action.sa_handler = note_interruption;
  action.sa_flags = SA_RESTART;  // poll() returns at once all the same, and nothing else has to know of this
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(kInterruptions); ++i) {
    sigaction(kInterruptions[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kInterruptions[i], &action, nullptr);  // as under nohup
  }
}

InterruptionWatch::~InterruptionWatch() {
  --watches;
  for (std::size_t i = 0; i < std::size(kInterruptions); ++i) sigaction(kInterruptions[i], &before_[i], nullptr);
}

int interruption() { return noted; }

JobIsHere::JobIsHere() {
  struct sigaction action {};
  action.sa_handler = end_with_job;
  sigemptyset(&action.sa_mask);
  sigaction(SIGALRM, &action, &before_);
  job_is_here = 1;
  if (noted) alarm(1);  // it came before the job began, and nobody asks any more
}

JobIsHere::~JobIsHere() {
  job_is_here = 0;
  alarm(0);
  sigaction(SIGALRM, &before_, nullptr);
}

}  // namespace twinbench
