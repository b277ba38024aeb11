// The host as a device: its stream, and what a wild access or a finding becomes.
#define TWINBENCH_SIMT
#include "harness/simt/host_launch.h"

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <cstdio>

#include "src/common/device_turn.h"

namespace twinbench::kernels {

struct HostStream {};

Stream current_host_stream() {
  static HostStream stream;
  return &stream;
}

namespace simt {
namespace {

std::atomic<std::uint64_t> turns_taken{0};

// Comes from an instruction of a kernel, on its thread's own stack, so it may throw: the launchers' host build has the
// tables for that (-fnon-call-exceptions), and the executor catches it.
void on_wild_access(int signal, siginfo_t* information, void*) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);  // the handler is left by a throw, which does not do that
  constexpr std::uintptr_t kNearNull = 1 << 16;     // nothing is ever mapped below
  const auto address = reinterpret_cast<std::uintptr_t>(information->si_addr);
  char text[32];
  std::snprintf(text, sizeof text, address < kNearNull ? "null + %#zx" : "%#zx", static_cast<std::size_t>(address));
  throw Error(ErrorKind::kBadKernel, "pointer", text, "the kernel reads or writes there, where no tensor is");
}

// While a kernel runs. The executor's own handler asks this one about what no guard page explains.
class WildAccessHandler {
 public:
  WildAccessHandler() {
    struct sigaction action {};
    action.sa_sigaction = on_wild_access;
    action.sa_flags = SA_SIGINFO;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &previous_);
  }
  ~WildAccessHandler() { sigaction(SIGSEGV, &previous_, nullptr); }
  WildAccessHandler(const WildAccessHandler&) = delete;
  WildAccessHandler& operator=(const WildAccessHandler&) = delete;

 private:
  struct sigaction previous_ {};
};

}  // namespace

std::uint64_t host_turns() { return turns_taken; }

void run_host_launch(const std::string& kernel, const std::function<Report()>& run) {
  const Report report = [&] {
    const DeviceTurn turn;
    const WildAccessHandler handler;
    return run();
  }();
  turns_taken += report.threads + report.switches;
  if (report.ok()) return;
  const Finding& first = report.findings.front();
  const std::string more =
      report.findings.size() > 1 ? "; " + std::to_string(report.findings.size()) + " findings in all" : "";
  throw Error(ErrorKind::kBadKernel, kernel, to_string(first.kind), first.line() + more);
}

namespace {
thread_local std::vector<HostLaunch>* recording = nullptr;  // while a graph is recorded
}

void issue_host_launch(const HostLaunch& launch) {
  if (recording != nullptr) return recording->push_back(launch);
  announce(DeviceEvent::kLaunch, [&] { return launch.kernel; });
  run_host_launch(launch.kernel, launch.run);
}

std::vector<HostLaunch> recorded_launches(const std::function<void()>& work) {
  if (recording != nullptr)
    throw Error(ErrorKind::kBadLaunch, "graph", "recorded within another", "record one after the other");
  std::vector<HostLaunch> launches;
  recording = &launches;
  try {
    work();
  } catch (...) {
    recording = nullptr;
    throw;
  }
  recording = nullptr;
  return launches;
}

}  // namespace simt
}  // namespace twinbench::kernels
