// Members that share a child process, and with it what they have in common. A member that dies takes the process with
// it and nothing else: it alone gets that result, and those after it go on in a fresh child.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness/runner/job.h"

namespace twinbench {

struct MemberOutcome {
  nlohmann::json value;
  bool sound = true;  // false: what this member did may have harmed the process; those after it go on in a fresh one
};

struct Batch {
  std::string name;
  std::vector<std::string> members;  // in their order
  // In the child: does the member at that place of `members`. What it keeps is there for the next one. What it throws
  // is that member's result, and ends the child.
  std::function<MemberOutcome(std::size_t member)> work;
  JobLimits limits;  // part_s is a member's; wall_s and silence_s are the whole batch's
  bool in_process = false;
};

struct BatchOptions {
  // In the parent, in the order in which things happen.
  std::function<void(const std::string& member)> on_start;
  std::function<void(const JobResult&)> on_result;  // named after the member; an interrupted member has none
  // Asked before every member, in parent and child; once true it stays true (a time budget that is spent).
  std::function<bool()> enough;
};

struct BatchReport {
  bool interrupted = false;
  std::vector<std::string> left_out;  // members that were not begun because it was enough
};

// One child at a time, under the rules of run_jobs. A child that dies between two members was harmed by the one before.
BatchReport run_batches(const std::vector<Batch>& batches, const BatchOptions& options);

}  // namespace twinbench
