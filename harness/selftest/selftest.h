// The harness proves itself: planted wrong twins that it must catch, and correct controls that it must let pass.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/runner/job.h"
#include "src/registry.h"

namespace twinbench {

struct SelftestCase {
  std::string name;       // "dropped_tail"
  std::string what;       // what is wrong with it, or what makes it look wrong, a phrase
  std::string caught_by;  // the check that must catch it; empty: a correct control that nothing may catch
  Component component;    // a small record, built in code
  Variant variant = Variant::kOptimized;  // which cell the parity checks look at
  // Times the optimized twin against this factory instead of running the other checks ("time").
  Factory reference = nullptr;
  Setting setting;
  // Times the cell as `bench` does instead of running the other checks ("answers" and the other rules of timing).
  bool benched = false;
  double clock_rate = 1;                                   // of the clock that measures it then
  bool clock_stalls = false;                               // or one that tells the same time twice now and then
  bool in_a_hurry = false;                                 // its answers depend on how soon it is called again
  std::map<std::string, std::int64_t> process_calls = {};  // pinned for it, see ProcessCallScope
  // Instead: the rows of a twin timed as bench does on the simulated device.
  std::function<nlohmann::json()> on_device = {};
  // Runs this as a job of the runner instead; the job's status is what catches it.
  std::function<nlohmann::json(JobContext&)> job = {};

  bool wrong() const { return !caught_by.empty(); }
  // By this machine's clock: others that run beside it may disturb the verdict. Wrong answers are wrong beside others.
  bool is_timed() const {
    const bool by_answers = caught_by == "answers" || caught_by == "failed" || caught_by == "global_state";
    return reference || (benched && (!by_answers || in_a_hurry));
  }
};

// One row of the record's selftest section.
struct SelftestRow {
  std::string name;
  std::string kind;  // wrong_twin, correct_control
  std::string caught_by;
  std::string expected;  // the check's name, or "accepted"
  std::string got;       // the checks that caught it, comma-separated, or "accepted"
  std::string verdict;   // pass, fail; skip where a timing case stayed inconclusive on a noisy machine
  std::string reason;    // what each catching check said
};

// Checks that may catch: those of the parity engine, "proof" (counters against their formulas), "growth" (memory from
// run to run), "leak" (memory that outlives the twin), "pins" (counters against those of a correct twin), "time"
// (paired timing against a correct twin). Of a cell that is timed as bench does: "answers" (what bench judges of a
// variant that it times), "sleeps", "padded", "remembers", "clock", "global_state", "failed" (it threw), and "no_gain"
// (it is not faster than its baseline); on a device also "clocks disagree". Of a job: the names of JobStatus.
const std::vector<SelftestCase>& selftest_cases();

SelftestRow run(const SelftestCase& selftest_case);

}  // namespace twinbench
