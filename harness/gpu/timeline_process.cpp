// Forks the sampler, asks it to end with one byte, and reads its answer as JSON.
#include "harness/gpu/timeline_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "harness/gpu/pipe_text.h"
#include "harness/gpu/timeline.h"

namespace twinbench {
namespace {

constexpr int kNice = 10;  // steps below the priority of what is measured

}  // namespace

TimelineProcess::TimelineProcess(const std::string& pci_bus_id, double period_s)
    : started_(std::chrono::steady_clock::now()) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    failure_ = std::string("socketpair: ") + std::strerror(errno);
    return;
  }
  std::fflush(nullptr);  // the child would write it a second time
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ < 0) failure_ = std::string("fork: ") + std::strerror(errno);
  const bool child = process_ == 0;
  close(ends[child ? 0 : 1]);
  socket_ = ends[child ? 1 : 0];
  if (child) sample(pci_bus_id, period_s, parent);
}

TimelineProcess::~TimelineProcess() {
  bury();
  if (socket_ >= 0) close(socket_);
}

double TimelineProcess::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

void TimelineProcess::sample(const std::string& pci_bus_id, double period_s, int parent) {
  signal(SIGINT, SIG_IGN);  // the parent decides when to end
  signal(SIGTERM, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  if (nice(kNice) == -1) errno = 0;   // no right to it: then at the same priority
  DeviceTimeline timeline(period_s, pci_bus_id, started_);
  char byte = 0;
  while (read(socket_, &byte, 1) < 0 && errno == EINTR) {
  }
  timeline.stop();
  write_all(socket_, nlohmann::json{{"samples", timeline.to_json()}, {"reason", timeline.reason()}}.dump());
  _exit(0);  // without the destructors and exit handlers of the parent
}

SampledTimeline TimelineProcess::stop(double patience_s) {
  if (process_ <= 0) return {nullptr, "not sampled: " + (failure_.empty() ? "it was stopped before" : failure_)};
  std::string text;
  if (send(socket_, "", 1, MSG_NOSIGNAL) == 1) text = read_all(socket_, patience_s);
  bury();
  const auto answer = nlohmann::json::parse(text, nullptr, false);
  if (answer.is_discarded()) return {nullptr, "not sampled: the sampling process died or hung"};
  return {answer["samples"], answer["reason"]};
}

void TimelineProcess::bury() {
  if (process_ <= 0) return;
  kill(process_, SIGKILL);  // it has answered, or will not
  waitpid(process_, nullptr, 0);
  process_ = -1;
}

}  // namespace twinbench
