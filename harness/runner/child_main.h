// What happens in a child between fork and its end.
#pragma once

#include "harness/runner/job.h"

namespace twinbench {

// Takes the place of stdin (nothing), stdout and stderr (`output`), sets the limits, runs the job, sends its value
// or its
// error over `result`, and ends the process without running the parent's destructors.
[[noreturn]] void run_child(const Job& job, int result, int output, int parent);

// Runs the job in this process, without limits; what it throws becomes its error. Its output goes where ours goes, its
// parts to `on_part` (may be empty).
JobResult run_here(const Job& job, const std::function<void(const Job&, const nlohmann::json& part)>& on_part);

}  // namespace twinbench
