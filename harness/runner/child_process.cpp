// Forking, reading, limiting and burying a child.
#include "harness/runner/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "harness/runner/child_main.h"
#include "harness/runner/memory_use.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::size_t kTailBytes = 4096;
constexpr double kGrace_s = 1;    // from the final message to the end of the process
constexpr double kBurial_s = 10;  // from SIGKILL to the end: longer only where a driver holds the process

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

void make_pipe(int (&ends)[2]) {
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(ErrorKind::kInputOutput, "pipe", std::strerror(errno), "close files or raise the limit (ulimit -n)");
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

// Everything a non-blocking descriptor has; closes it at its end.
// `refused`: the number of the error that ended it, none at the writer's end.
std::string read_available(int& descriptor, int& refused) {
  std::string bytes;
  char buffer[65536];
  while (descriptor >= 0) {
    const ssize_t count = read(descriptor, buffer, sizeof buffer);
    if (count > 0) {
      bytes.append(buffer, static_cast<std::size_t>(count));
      if (bytes.size() >= (std::size_t{1} << 22)) break;  // an endless writer must not hold the runner
    } else if (count < 0 && errno == EINTR) {
      continue;
    } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      break;
    } else {
      if (count < 0) refused = errno;
      close(descriptor);
      descriptor = -1;
    }
  }
  return bytes;
}

}  // namespace

ChildProcess::ChildProcess(const Job& job, OnPart on_part)
    : job_(job), on_part_(std::move(on_part)), key_(new_seal_key()), reader_(key_) {
  int result_ends[2], output_ends[2];
  make_pipe(result_ends);
  try {
    make_pipe(output_ends);
  } catch (...) {
    close(result_ends[0]);
    close(result_ends[1]);
    throw;
  }
  try {
    folder_.emplace();
  } catch (const Error&) {
    folder_.reset();  // a job that needs one says so itself
  }
  result_.name = job.name;
  std::fflush(nullptr);  // what is buffered now would be written a second time by the child
  const pid_t parent = getpid();
  inherited_bytes_ = held_bytes(parent);
  started_s_ = last_sign_s_ = last_part_s_ = now_s();
  process_ = fork();
  if (process_ == 0) {
    close(result_ends[0]);
    close(output_ends[0]);
    seal_messages(key_);
    if (folder_) setenv("TMPDIR", folder_->path().c_str(), 1);
    run_child(job, result_ends[1], output_ends[1], parent);
  }
  const int failure = errno;
  close(result_ends[1]);
  close(output_ends[1]);
  result_pipe_ = result_ends[0];
  output_pipe_ = output_ends[0];
  if (process_ < 0) {
    close(result_pipe_);
    close(output_pipe_);
    throw Error(ErrorKind::kInputOutput, "fork", std::strerror(failure), "free memory or processes on this machine");
  }
  setpgid(process_, process_);  // in both processes: whoever comes first, the group exists before it is killed
}

ChildProcess::~ChildProcess() {
  if (!finished_) {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  if (result_pipe_ >= 0) close(result_pipe_);
  if (output_pipe_ >= 0) close(output_pipe_);
}

void ChildProcess::add_descriptors(std::vector<pollfd>& descriptors) const {
  for (const int descriptor : {result_pipe_, output_pipe_})
    if (descriptor >= 0) descriptors.push_back({descriptor, POLLIN, 0});
}

void ChildProcess::stop(JobStatus status, const std::string& what) {
  if (finished_ || stopped_) return;
  stopped_ = true;
  stopped_s_ = now_s();
  result_.status = status;
  result_.what = what;
  kill(-process_, SIGKILL);
}

void ChildProcess::read_result() {
  int refused = 0;
  const std::string bytes = read_available(result_pipe_, refused);
  if (refused != 0 && !answered_) {  // what the child says is lost: the system's fault, not the child's
    result_.error_kind = name_of(ErrorKind::kInputOutput);
    return stop(JobStatus::kError, Error(ErrorKind::kInputOutput, "result pipe", std::strerror(refused),
                                         "run it again; look at the system's log")
                                       .what());
  }
  if (bytes.empty()) return;
  last_sign_s_ = now_s();
  for (const nlohmann::json& message : reader_.take(bytes)) {
    if (answered_) {
      stop(JobStatus::kProtocolError, "wrote to the result pipe after its result");
      return;
    }
    take(message);
  }
  if (!reader_.broken().empty()) stop(JobStatus::kProtocolError, reader_.broken());
}

void ChildProcess::take(const nlohmann::json& message) {
  const std::string& kind = message["kind"].get_ref<const std::string&>();
  if (kind == "alive") return;
  if (kind == "part") {
    last_part_s_ = now_s();
    result_.parts.push_back(message.value("value", nlohmann::json()));
    if (on_part_) on_part_(job_, result_.parts.back());
    return;
  }
  answered_ = true;
  answered_s_ = now_s();
  if (kind == "result" && message.contains("value")) {
    result_.status = JobStatus::kOk;
    result_.value = message["value"];
  } else if (kind == "error") {
    result_.status = message.value("status", "") == "out_of_memory" ? JobStatus::kOutOfMemory : JobStatus::kError;
    result_.what = message.value("what", "");
    result_.error_kind = message.value("error_kind", "");
  } else {
    stop(JobStatus::kProtocolError, "a message is not JSON of a known kind");
  }
}

void ChildProcess::read_output() {
  int refused = 0;
  const std::string bytes = read_available(output_pipe_, refused);
  if (refused != 0) result_.output_tail += std::string("(its output: ") + std::strerror(refused) + ")\n";
  if (bytes.empty()) return;
  last_sign_s_ = now_s();
  result_.output_tail += bytes;
  if (result_.output_tail.size() > kTailBytes) result_.output_tail.erase(0, result_.output_tail.size() - kTailBytes);
}

void ChildProcess::attend() {
  if (finished_) return;
  read_result();
  read_output();
  int wait_status = 0;
  rusage usage{};
  const pid_t ended = wait4(process_, &wait_status, WNOHANG, &usage);
  if (ended == process_) {
    result_.peak_resident_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
    const bool others = stop_group(process_);
    kill(-process_, SIGKILL);  // whatever it has started and left behind
    read_result();             // what it wrote between the reads above and its end
    read_output();
    conclude(wait_status);
    if (others && !stopped_ && result_.ok()) {
      result_.status = JobStatus::kError;
      result_.what = "left_processes: its job is done, and processes that it started still ran";
    }
  } else if (stopped_ && now_s() - stopped_s_ > kBurial_s) {
    result_.what += "; the process " + std::to_string(process_) + " does not die, it is left behind";
    result_.seconds = now_s() - started_s_;
    finished_ = true;
  } else if (!stopped_) {
    enforce_limits();
  }
}

double ChildProcess::seconds_to_next_limit() const {
  if (result_pipe_ < 0 || stopped_ || answered_) return 0.001;
  const double now = now_s();
  return std::max(0.0, std::min({started_s_ + job_.limits.wall_s, last_sign_s_ + job_.limits.silence_s,
                                 last_part_s_ + job_.limits.part_s}) -
                           now);
}

void ChildProcess::enforce_limits() {
  const double now = now_s();
  if (answered_) {
    if (now - answered_s_ > kGrace_s) stop(result_.status, result_.what);
    return;
  }
  const std::uint64_t held = held_bytes(process_);
  if (job_.limits.memory_bytes > 0 && held > inherited_bytes_ + job_.limits.memory_bytes)
    stop(JobStatus::kOutOfMemory, "held " + std::to_string((held - inherited_bytes_) >> 20) + " MiB; the limit is " +
                                      std::to_string(job_.limits.memory_bytes >> 20) + " MiB");
  else if (now - started_s_ > job_.limits.wall_s)
    stop(JobStatus::kTimeout, "longer than " + seconds_text(job_.limits.wall_s));
  else if (now - last_part_s_ > job_.limits.part_s)
    stop(JobStatus::kTimeout, "longer than " + seconds_text(job_.limits.part_s));
  else if (now - last_sign_s_ > job_.limits.silence_s)
    stop(JobStatus::kSilent, "no sign of life for " + seconds_text(job_.limits.silence_s));
}

void ChildProcess::conclude(int wait_status) {
  finished_ = true;
  result_.seconds = now_s() - started_s_;
  result_.output_tail = valid_utf8(result_.output_tail);
  result_.what = valid_utf8(result_.what);
  if (stopped_) return;
  const std::string after = answered_ ? " after its result" : "";
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    result_.status = signal == SIGABRT ? JobStatus::kAborted : JobStatus::kCrashed;
    result_.what = signal_name(signal) + after;
    if (signal == SIGKILL) result_.what += ", not by the runner: the system may have run out of memory";
    return;
  }
  if (reader_.in_the_middle()) {
    result_.status = JobStatus::kProtocolError;
    result_.what = "a message on the result pipe was cut short";
    return;
  }
  if (answered_) return;
  const std::string exit = "exited with code " + std::to_string(WEXITSTATUS(wait_status)) + " before its result";
  const bool sanitizer = result_.output_tail.find("Sanitizer:") != std::string::npos;
  result_.status = sanitizer ? JobStatus::kCrashed : JobStatus::kProtocolError;
  result_.what = sanitizer ? "a sanitizer ended it, " + exit : exit;
}

}  // namespace twinbench
