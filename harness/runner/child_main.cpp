// The child's side: every way for a job to end becomes a message, unless it ends the process.
#include "harness/runner/child_main.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "harness/runner/memory_use.h"
#include "harness/runner/message.h"
#include "harness/runner/told_error.h"
#include "src/common/error.h"
#include "src/common/refused_thread.h"

namespace twinbench {
namespace {

nlohmann::json error_message(std::string_view what, const char* error_kind = "") {
  const bool memory = error_kind == std::string_view(name_of(ErrorKind::kOutOfMemory));
  return {
      {"kind", "error"}, {"status", memory ? "out_of_memory" : "error"}, {"what", what}, {"error_kind", error_kind}};
}

// The job's value or its error as a message. Whatever the job held is freed before the message is made.
nlohmann::json outcome_of(const Job& job, JobContext& context) {
  try {
    return {{"kind", "result"}, {"value", job.run(context)}};
  } catch (const Error& error) {
    lift_memory_limit();
    return error_message(error.what(), name_of(error.kind()));
  } catch (const std::exception& error) {
    lift_memory_limit();
    if (const auto memory = refused_memory_in(error.what()))
      return error_message(memory->what(), name_of(memory->kind()));
    if (const auto system = refused_by_system(error)) return error_message(system->what(), name_of(system->kind()));
    return error_message(told(error));
  } catch (...) {
    lift_memory_limit();
    return error_message("threw something that is no std::exception");
  }
}

int result_pipe = -1;  // a function without arguments of its own finds it nowhere else

// The library that asked for the thread would wait for ever, or end the process without a word.
void tell_of_refused_thread(int error) {
  try {
    const Error refused = refused_thread(error);
    send_message(result_pipe, error_message(refused.what(), name_of(refused.kind())));
  } catch (const std::exception&) {
    _exit(1);
  }
  _exit(0);
}

void flush_output() {
  std::cout.flush();
  std::fflush(nullptr);
}

}  // namespace

void run_child(const Job& job, int result, int output, int parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before the line above
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  signal(SIGHUP, SIG_DFL);
  signal(SIGXCPU, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);  // a rank that writes to one that has ended hears of it as an error
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  // A pipe is buffered in blocks: a crash would take the last lines, the interesting ones, with it.
  // Its own buffer, because a stream that was in use does not change its ways without a new one.
  static char line_buffer[BUFSIZ];
  std::setvbuf(stdout, line_buffer, _IOLBF, sizeof line_buffer);
  limit_memory_of_this_process(job.limits.memory_bytes);
  JobContext context(result);
  result_pipe = result;
  when_thread_is_refused = tell_of_refused_thread;
  const nlohmann::json outcome = outcome_of(job, context);
  flush_output();
  try {
    send_message(result, outcome);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the result could not be sent: %s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

JobResult run_here(const Job& job, const std::function<void(const Job&, const nlohmann::json& part)>& on_part) {
  const auto started = std::chrono::steady_clock::now();
  JobResult result;
  JobContext context([&](const nlohmann::json& part) {
    result.parts.push_back(part);
    if (on_part) on_part(job, part);
  });
  const nlohmann::json outcome = outcome_of(job, context);
  flush_output();
  result.name = job.name;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  if (outcome["kind"] == "result") {
    result.status = JobStatus::kOk;
    result.value = outcome["value"];
  } else {
    result.status = outcome["status"] == "out_of_memory" ? JobStatus::kOutOfMemory : JobStatus::kError;
    result.what = outcome["what"];
    result.error_kind = outcome["error_kind"];
  }
  return result;
}

}  // namespace twinbench
