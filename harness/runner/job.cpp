// Names and the JSON form of results; the child's messages.
#include "harness/runner/job.h"

#include <chrono>

#include "harness/runner/message.h"

namespace twinbench {

const char* name_of(JobStatus status) {
  switch (status) {
    case JobStatus::kOk: return "ok";
    case JobStatus::kError: return "error";
    case JobStatus::kCrashed: return "crashed";
    case JobStatus::kAborted: return "aborted";
    case JobStatus::kTimeout: return "timeout";
    case JobStatus::kOutOfMemory: return "out_of_memory";
    case JobStatus::kSilent: return "silent";
    case JobStatus::kProtocolError: return "protocol_error";
    case JobStatus::kInterrupted: return "interrupted";
  }
  return "protocol_error";
}

std::string JobResult::reason() const {
  if (ok()) return "";
  return what.empty() ? name_of(status) : std::string(name_of(status)) + ": " + what;
}

nlohmann::json to_json(const JobResult& result) {
  return {{"name", result.name},
          {"status", name_of(result.status)},
          {"what", result.what},
          {"error_kind", result.error_kind},
          {"value", result.value},
          {"parts", result.parts},
          {"output_tail", result.output_tail},
          {"seconds", result.seconds},
          {"peak_resident_bytes", result.peak_resident_bytes}};
}

void JobContext::report(const nlohmann::json& part) {
  if (on_part_) return on_part_(part);
  send_message(descriptor_, {{"kind", "part"}, {"value", part}});
}

void JobContext::alive() {
  if (on_part_) return;
  const double now = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  if (sent_at_ >= 0 && now - sent_at_ < 0.1) return;
  sent_at_ = now;
  send_message(descriptor_, {{"kind", "alive"}});
}

}  // namespace twinbench
