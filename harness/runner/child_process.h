// The runner's view of one child: its pipes, its limits and how it ended.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/runner/job.h"
#include "harness/runner/message.h"
#include "src/formats/file_io.h"

namespace twinbench {

class ChildProcess {
 public:
  using OnPart = std::function<void(const Job&, const nlohmann::json& part)>;

  // Forks. Throws Error(kInputOutput) where the system refuses. `job` must outlive this.
  ChildProcess(const Job& job, OnPart on_part);
  ~ChildProcess();  // kills what still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void add_descriptors(std::vector<pollfd>& descriptors) const;

  // Reads what has come, enforces the limits, collects the child when it has ended.
  void attend();

  // Kills the child and all it started; the first reason given stands.
  void stop(JobStatus status, const std::string& what);

  bool finished() const { return finished_; }
  double seconds_to_next_limit() const;  // 0 where one is passed; short while the end is awaited
  const JobResult& result() const { return result_; }

 private:
  void read_result();
  void read_output();
  void take(const nlohmann::json& message);
  void enforce_limits();
  void conclude(int wait_status);

  const Job& job_;
  OnPart on_part_;
  std::optional<TemporaryDirectory> folder_;  // the child's: what it leaves there when it is killed goes with it
  pid_t process_ = -1;
  int result_pipe_ = -1, output_pipe_ = -1;
  double started_s_ = 0, last_sign_s_ = 0, last_part_s_ = 0, stopped_s_ = 0, answered_s_ = 0;
  std::uint64_t inherited_bytes_ = 0;
  const SealKey key_;
  MessageReader reader_;
  bool answered_ = false;  // the final message is in
  bool stopped_ = false;   // killed by the runner
  bool finished_ = false;
  JobResult result_;
};

}  // namespace twinbench
