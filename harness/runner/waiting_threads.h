// How OpenMP threads wait for their next piece of work: TWINBENCH_WAIT_POLICY decides, nothing else. Threads that spin
// take a core from the one that works as soon as the machine does something else too: 68 ms a call in an operator of
// 0.4 ms.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace twinbench {

struct WaitingThreads {
  std::string policy;  // "passive" (they sleep; the default), "active" (they spin) or "environment" (OMP_* decides)
  std::vector<std::pair<std::string, std::optional<std::string>>> changes;  // variable and its new value; none: removed
  std::string overridden;  // what the environment asked for and does not get, "OMP_WAIT_POLICY=ACTIVE"; empty: nothing
};

// What the variables of an environment (a null: not set) come to. Throws for a policy that does not exist.
WaitingThreads plan_waiting_threads(const std::function<const char*(const char*)>& variable);

// For .preinit_array, before the constructors of the libraries: that of the OpenMP runtime reads its variables, and
// those of LibTorch take a third of a second. Where the variables are not what the policy asks for, starts the program
// once more with those that are, and says so if that overrides somebody's choice. Does nothing for a policy that does
// not exist, and where the system refuses.
void start_with_policy(char** arguments, char** environment) noexcept;

// In main: the policy. Throws for one that does not exist, and where the program could not be started with it.
std::string policy_of_waiting_threads();

}  // namespace twinbench
