// Runs every check of the harness on one planted twin and compares what caught it with what had to.
#include "harness/selftest/selftest.h"

#include <time.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "harness/bench/twin_timing.h"
#include "harness/compare/inputs.h"
#include "harness/counters/case_memory.h"
#include "harness/counters/count_component.h"
#include "harness/counters/pins.h"
#include "harness/counters/process_calls.h"
#include "harness/parity/tier.h"
#include "harness/runner/runner.h"
#include "harness/runner/told_error.h"
#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"
#include "harness/timing/paired.h"

namespace twinbench {

namespace {

constexpr std::uint64_t kSeed = 20240229;

struct Catch {
  std::string check, reason;
};

std::vector<Catch> caught_by_parity(const SelftestCase& selftest_case, Tier tier) {
  ParityOptions options = parity_options(tier, selftest_case.variant);
  options.checks.clear();  // a planted baseline gets every check too
  std::vector<Catch> caught;
  for (const auto& result :
       check_cell(selftest_case.component, selftest_case.variant, selftest_case.setting, kSeed, options)) {
    // Memory that is refused says nothing of the twin.
    if (result.verdict == CheckVerdict::kError && result.reason.rfind(name_of(ErrorKind::kOutOfMemory), 0) == 0)
      throw Error(ErrorKind::kOutOfMemory, result.check, result.reason, "run it again with more memory free");
    if (result.verdict == CheckVerdict::kFail || result.verdict == CheckVerdict::kError)
      caught.push_back({result.check, std::string(name_of(result.verdict)) + ": " + result.reason});
  }
  return caught;
}

// What both tiers catch; where they differ, a row of its own says so, which nothing expects.
void run_parity(const SelftestCase& selftest_case, std::vector<Catch>& caught) {
  const auto quick = caught_by_parity(selftest_case, Tier::kQuick), full = caught_by_parity(selftest_case, Tier::kFull);
  const auto has = [](const std::vector<Catch>& list, const std::string& check) {
    return std::any_of(list.begin(), list.end(), [&](const Catch& one) { return one.check == check; });
  };
  for (const auto& one : full)
    caught.push_back(has(quick, one.check) ? one : Catch{one.check + " (tier full only)", one.reason});
  // What is changed or left once cannot be changed or left again.
  const auto once = [](const std::string& check) { return check == "global_state" || check == "outlives"; };
  for (const auto& one : quick)
    if (once(one.check) && !has(full, one.check)) caught.push_back(one);
  for (const auto& one : quick)
    if (!once(one.check) && !has(full, one.check)) caught.push_back({one.check + " (tier quick only)", one.reason});
}

void run_counters(const SelftestCase& selftest_case, std::vector<Catch>& caught) {
  for (const auto& proof : check_proof(selftest_case.component, selftest_case.setting, kSeed))
    if (!proof.pass) caught.push_back({"proof", proof.reason});
  const GrowthResult growth = check_growth(selftest_case.component, Variant::kOptimized, selftest_case.setting, kSeed);
  if (!growth.pass) caught.push_back({"growth", growth.reason});
  const std::string leak =
      case_memory(selftest_case.component, Variant::kOptimized, selftest_case.setting, kSeed).leak();
  if (!leak.empty()) caught.push_back({"leak", leak});
  // The correct twin's counters are what would be pinned.
  if (selftest_case.component.spec.name != "row_scale" || selftest_case.setting.input_case.pass == Pass::kBackward)
    return;
  Component correct = selftest_case.component;
  correct.optimized = make<selftest::RowScale>;
  Pins pins;
  CounterSnapshot pinned = count_run(correct, Variant::kOptimized, selftest_case.setting, kSeed).counters;
  if (ProcessCallScope::counts_here()) pinned.process_calls = selftest_case.process_calls;
  pins.set("cell", pinned);
  const PinVerdict verdict = pins.check(
      "cell", count_run(selftest_case.component, Variant::kOptimized, selftest_case.setting, kSeed).counters);
  if (!verdict.pass) caught.push_back({"pins", verdict.reason});
}

// Processor time of this thread: the twins are serial, and other load on the machine is not what is tested here.
class ThreadClock : public Clock {
 public:
  std::int64_t now() override {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  }
};

// Noise may leave one measurement open, and once, beside 160 that were within 1 %, two equal twins were 5 % apart:
// by a moment of the machine, or by where they lay in memory for as long as they lived. A difference is one that new
// instances, made in the other order, show again.
TimeVerdict run_time(const SelftestCase& selftest_case, std::vector<Catch>& caught, std::string& explanation) {
  constexpr int kMostTries = 4;
  const NamedTensors inputs = generated_inputs(selftest_case.component.spec, selftest_case.setting, kSeed);
  PairedOptions options;
  options.time_budget_s = 6;
  ThreadClock clock;
  PairedResult result;
  TimeVerdict shown = TimeVerdict::kInconclusive;
  for (int tried = 0; tried < kMostTries; ++tried) {
    std::unique_ptr<Runnable> reference, twin;
    if (tried % 2 == 0) reference = selftest_case.reference(inputs, selftest_case.setting);
    twin = selftest_case.component.optimized(inputs, selftest_case.setting);
    if (!reference) reference = selftest_case.reference(inputs, selftest_case.setting);
    options.seed = static_cast<std::uint64_t>(tried) + 1;
    result = measure_pair({"correct", [&] { reference->run(); }, {}, {}, {}},
                          {"planted", [&] { twin->run(); }, {}, {}, {}}, options, clock);
    if (result.verdict == TimeVerdict::kInconclusive) continue;
    if (result.verdict == TimeVerdict::kSame || result.verdict == shown) break;
    shown = std::exchange(result.verdict, TimeVerdict::kInconclusive);
  }
  explanation = std::string(name_of(result.verdict)) + ", ratio " + std::to_string(result.ratio) + " over " +
                std::to_string(result.pairs) + " pairs" +
                (result.explanation().empty() ? "" : ": " + result.explanation());
  if (result.verdict == TimeVerdict::kSlower || result.verdict == TimeVerdict::kFaster)
    caught.push_back({"time", explanation});
  return result.verdict;
}

// Tells so much of the time that passes.
class PatchedClock : public Clock {
 public:
  PatchedClock(double rate, bool stalls) : rate_(rate), stalls_(stalls) {}
  std::int64_t now() override {
    if (!stalls_ || ++readings_ % 7 != 0) told_ = static_cast<std::int64_t>(rate_ * static_cast<double>(right_.now()));
    return told_;
  }

 private:
  SteadyClock right_;
  double rate_;
  bool stalls_;
  std::int64_t readings_ = 0, told_ = 0;
};

void take_rows(const nlohmann::json& rows, bool verdict_wanted, std::vector<Catch>& caught) {
  for (const auto& row : rows["timings"]) {
    const std::string reason = row["reason"];
    const std::string rule = reason.substr(0, reason.find(':'));
    if (row["verdict"] == "rejected") caught.push_back({rule.rfind("answer_", 0) == 0 ? "answers" : rule, reason});
    if (row["verdict"] == "error") caught.push_back({"failed", reason});
  }
  for (const auto& row : rows["speedups"]) {
    if ((row["verdict"] == "rejected" || row["ratio"].is_null()) && caught.empty())
      caught.push_back({"speedup", row["reason"]});
    if (verdict_wanted && row["verdict"] != "faster")
      caught.push_back({"no_gain", row["verdict"].get<std::string>() + ", ratio " + row["ratio"].dump() + ": " +
                                       row["reason"].get<std::string>()});
  }
}

// A few short samples are enough: it is the rules around them that are tested. More where a verdict is asked for.
void run_bench(const SelftestCase& selftest_case, std::vector<Catch>& caught) {
  Component component = selftest_case.component;
  auto& cases = component.spec.cases;
  std::erase_if(cases, [&](const Case& one) { return one.name == selftest_case.setting.input_case.name; });
  cases.push_back(selftest_case.setting.input_case);
  const Case& input_case = cases.back();
  const bool verdict_wanted = selftest_case.caught_by == "no_gain";
  PatchedClock clock(selftest_case.clock_rate, selftest_case.clock_stalls);
  TwinTimingOptions options;
  options.seed = kSeed;
  options.max_pairs = verdict_wanted ? 32 : 8;
  options.seconds = verdict_wanted ? 2 : 0.5;
  if (!verdict_wanted) options.longest_sample_s = 0.01;
  options.clock = {1e-9, 50e-9};
  options.time = &clock;
  // Where other programs want every processor, a sleep may be lost among the waits of one try; and one interval of a
  // hundred misses the ratio of two equals. A gain that was never timed is there every time.
  const int tries = selftest_case.caught_by == "sleeps" ? 4 : verdict_wanted ? 3 : 1;
  for (int at = 0; at < tries && caught.empty(); ++at)
    take_rows(time_twin({&component, c10::DeviceType::CPU, selftest_case.setting.dtype, &input_case}, options, {}),
              verdict_wanted, caught);
}

// The simulated device's time does not depend on this machine: a doubt about a ratio is a rule that fired.
void run_on_device(const SelftestCase& selftest_case, std::vector<Catch>& caught) {
  const auto rows = selftest_case.on_device();
  take_rows(rows, selftest_case.caught_by == "no_gain", caught);
  for (const auto& row : rows["speedups"]) {
    const std::string reason = row["reason"];
    if (row["verdict"] == "inconclusive") caught.push_back({reason.substr(0, reason.find(':')), reason});
  }
}

// A child of its own; a cheat that never ends is given half a second.
void run_job(const SelftestCase& selftest_case, std::vector<Catch>& caught) {
  Job job;
  job.name = selftest_case.name;
  job.run = selftest_case.job;
  job.limits.wall_s = 0.5;
  const JobResult result = run_jobs({job}).results.front();
  if (!result.ok()) caught.push_back({name_of(result.status), result.what});
  if (result.ok() && result.value != "the right answer") caught.push_back({"answers", "the job's value is another"});
}

std::string joined(const std::vector<Catch>& caught, std::string Catch::*field, const char* separator) {
  std::string text;
  for (const auto& one : caught)
    if (text.find(one.*field) == std::string::npos) text += (text.empty() ? "" : separator) + one.*field;
  return text;
}

}  // namespace

const std::vector<SelftestCase>& selftest_cases() {
  static const std::vector<SelftestCase> cases = [] {
    std::vector<SelftestCase> all = selftest::wrong_answers();
    for (auto& list :
         {selftest::wrong_behaviour(), selftest::wrong_in_state_or_kind(), selftest::wrong_when_timed(),
          selftest::sly_twins(), selftest::meddlers(), selftest::sly_when_timed(), selftest::host_twins(),
          selftest::memory_twins(), selftest::simt_twins(), selftest::device_twins(), selftest::sly_jobs(),
          selftest::correct_controls(), selftest::correct_in_state_or_kind(), selftest::correct_when_timed(),
          selftest::correct_at_the_edge(), selftest::correct_at_the_edge_when_timed()})
      all.insert(all.end(), list.begin(), list.end());
    return all;
  }();
  return cases;
}

SelftestRow run(const SelftestCase& selftest_case) {
  SelftestRow row{selftest_case.name,
                  selftest_case.wrong() ? "wrong_twin" : "correct_control",
                  selftest_case.caught_by,
                  selftest_case.wrong() ? selftest_case.caught_by : "accepted",
                  "accepted",
                  "fail",
                  ""};
  std::vector<Catch> caught;
  std::string explanation;
  bool open = false;
  try {
    if (selftest_case.job) {
      run_job(selftest_case, caught);
    } else if (selftest_case.reference) {
      open = run_time(selftest_case, caught, explanation) == TimeVerdict::kInconclusive;
    } else if (selftest_case.on_device) {
      run_on_device(selftest_case, caught);
    } else if (selftest_case.benched) {
      run_bench(selftest_case, caught);
    } else {
      run_parity(selftest_case, caught);
      if (!selftest_case.setting.device.is_simt())
        run_counters(selftest_case, caught);  // its baseline does not run there
    }
  } catch (const std::exception& error) {
    // What the system refuses says nothing of the twin.
    const auto* const typed = dynamic_cast<const Error*>(&error);
    if (typed && typed->kind() == ErrorKind::kOutOfMemory) throw;
    if (const auto refused = refused_memory_in(error.what())) throw *refused;
    if (const auto refused = refused_by_system(error)) throw *refused;
    caught.push_back({"error", told(error)});
  }
  if (!caught.empty()) row.got = joined(caught, &Catch::check, ",");
  for (const auto& one : caught) row.reason += (row.reason.empty() ? "" : "; ") + one.check + ": " + one.reason;
  bool expected = !selftest_case.wrong() && caught.empty();
  for (const auto& one : caught) expected = expected || (selftest_case.wrong() && one.check == selftest_case.caught_by);
  row.verdict = expected ? "pass" : "fail";
  if (open && selftest_case.wrong()) {
    row.got = "inconclusive";
    row.verdict = "skip";
  }
  if (row.reason.empty()) row.reason = explanation;
  if (!expected && row.reason.empty()) row.reason = "nothing caught it";
  return row;
}

}  // namespace twinbench
