// Compares OMP_WAIT_POLICY and GOMP_SPINCOUNT, all that libgomp asks, with the policy; sets them and starts anew.
#include "harness/runner/waiting_threads.h"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr char kPolicy[] = "TWINBENCH_WAIT_POLICY";
constexpr char kOverridden[] = "TWINBENCH_WAIT_OVERRIDDEN";  // for the record: the second start no longer sees it

}  // namespace

WaitingThreads plan_waiting_threads(const std::function<const char*(const char*)>& variable) {
  const char* asked = variable(kPolicy);
  WaitingThreads plan{.policy = asked && *asked ? asked : "passive", .changes = {}, .overridden = {}};
  if (plan.policy == "environment") return plan;
  if (plan.policy != "passive" && plan.policy != "active")
    throw Error(ErrorKind::kBadArgument, kPolicy, plan.policy, "give passive, active or environment");
  const auto change = [&](const char* name, const char* present, std::optional<std::string> value) {
    if (present) plan.overridden += (plan.overridden.empty() ? "" : " ") + std::string(name) + "=" + present;
    plan.changes.emplace_back(name, std::move(value));
  };
  const char* wanted = plan.policy == "passive" ? "PASSIVE" : "ACTIVE";
  const char* present = variable("OMP_WAIT_POLICY");
  if (!present || strcasecmp(present, wanted) != 0) change("OMP_WAIT_POLICY", present, wanted);
  // A count of turns goes before the policy.
  if (const char* count = variable("GOMP_SPINCOUNT")) change("GOMP_SPINCOUNT", count, std::nullopt);
  return plan;
}

void start_with_policy(char** arguments, char** environment) noexcept {
  const auto in_environment = [environment](const std::string& name) {
    char** at = environment;
    while (*at && std::strncmp(*at, (name + "=").c_str(), name.size() + 1) != 0) ++at;
    return at;
  };
  try {
    auto plan = plan_waiting_threads([&](const char* name) -> const char* {
      const char* const found = *in_environment(name);
      return found ? found + std::strlen(name) + 1 : nullptr;
    });
    if (plan.changes.empty()) return;
    if (!plan.overridden.empty()) {
      std::fprintf(stderr, "twinbench: waiting threads: %s, not %s; %s=environment leaves it to the environment\n",
                   plan.policy.c_str(), plan.overridden.c_str(), kPolicy);
      plan.changes.emplace_back(kOverridden, plan.overridden);
    }
    std::vector<std::string> added;
    std::vector<char*> variables;
    for (char** at = environment; *at; ++at)
      if (std::none_of(plan.changes.begin(), plan.changes.end(),
                       [&](const auto& change) { return in_environment(change.first) == at; }))
        variables.push_back(*at);
    for (const auto& [name, value] : plan.changes)
      if (value) added.push_back(name + "=" + *value);
    for (std::string& variable : added) variables.push_back(variable.data());
    variables.push_back(nullptr);
    execve("/proc/self/exe", arguments, variables.data());
  } catch (const Error&) {  // main says it
  }
}

std::string policy_of_waiting_threads() {
  const auto plan = plan_waiting_threads([](const char* name) -> const char* { return std::getenv(name); });
  if (plan.changes.empty()) return plan.policy;
  throw Error(ErrorKind::kInputOutput, "/proc/self/exe", "it could not be started once more",
              "set OMP_WAIT_POLICY=PASSIVE and unset GOMP_SPINCOUNT, so that the program need not start again");
}

}  // namespace twinbench
