// Judging, and drawing again where nothing can be told.
#include "harness/parity/drawn_inputs.h"

#include <algorithm>
#include <optional>

#include "harness/compare/inputs.h"
#include "harness/counters/counter_scope.h"
#include "harness/parity/held_out.h"
#include "harness/parity/reference.h"
#include "harness/parity/shared_case.h"
#include "harness/parity/tier.h"
#include "harness/simt/host_launch.h"
#include "src/common/error.h"

namespace twinbench {

namespace {

bool broken(const CheckResult& row) {
  return row.verdict == CheckVerdict::kFail || row.verdict == CheckVerdict::kError;
}

bool holds(const std::vector<CheckResult>& rows) { return std::none_of(rows.begin(), rows.end(), broken); }

bool only_comparisons_failed(const std::vector<CheckResult>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const CheckResult& row) {
    return !broken(row) || (row.verdict == CheckVerdict::kFail && row.in_comparison);
  });
}

bool plainly_wrong(const std::vector<CheckResult>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const CheckResult& row) {
    return broken(row) && std::any_of(row.outputs.begin(), row.outputs.end(), [](const OutputRow& output) {
             return output.comparison.worst_ratio > kNearMiss;
           });
  });
}

// Against the oracle, and by no more than honest arithmetic may once in some thousand draws: the rules are held against
// the error of one run.
bool narrowly_wrong(const std::vector<CheckResult>& rows) {
  constexpr double kNarrowly = 2;
  const auto narrow = [](const OutputRow& output) { return output.comparison.worst_ratio <= kNarrowly; };
  const auto rejected = [](const OutputRow& output) { return !output.comparison.accepted(); };
  return std::any_of(rows.begin(), rows.end(),
                     [&](const CheckResult& row) {
                       return row.check == "oracle" && broken(row) &&
                              std::any_of(row.outputs.begin(), row.outputs.end(), rejected);
                     }) &&
         std::all_of(rows.begin(), rows.end(), [&](const CheckResult& row) {
           return std::all_of(row.outputs.begin(), row.outputs.end(), narrow);
         });
}

CheckResult note(const char* check, std::uint64_t seed, const std::string& text) {
  CheckResult row;
  row.check = check;
  row.seed = seed;
  row.reason = text;
  return row;
}

// Whether the oracle's verdict is open because close decisions leave most of it out: the one reason to skip it.
bool compares_little(const std::vector<CheckResult>& rows) {
  return std::any_of(rows.begin(), rows.end(), [](const CheckResult& row) {
    return row.check == "oracle" && row.verdict == CheckVerdict::kSkip;
  });
}

// The first seed after this one of some of which most is compared; none where none is.
std::optional<std::uint64_t> next_compared(const Component& component, const Setting& setting, std::uint64_t seed,
                                           SharedCases& cases, std::string& why_again) {
  constexpr int kMost = 12;
  std::string why;
  for (int draw = 0; draw < kMost; ++draw) {
    const std::uint64_t now = seed + static_cast<std::uint64_t>(draw) * kNextSeed;
    const std::string& left_out = cases.of(component, setting, now).reference().left_out();
    if (left_out.empty()) {
      why_again = why;
      return now;
    }
    why += (why.empty() ? "" : "; ") + ("seed " + std::to_string(now) + ": " + left_out);
  }
  return std::nullopt;
}

std::int64_t operators_of(const Component& component, const Setting& setting, const NamedTensors& generated) {
  const CounterScope scope({/*track_devices=*/false});
  (void)baseline_outputs(component, setting, generated);
  return scope.snapshot().dispatches;
}

// Empty, or what takes longer than the options allow a held-out draw: found by a run.
std::string too_long(const Cell& cell, const Setting& setting, std::uint64_t seed, const ParityOptions& options) {
  const Component& component = *cell.component;
  Setting plain = setting;
  plain.dtype = Dtype::kFp32;
  plain.device = Device();
  const NamedTensors generated = generated_inputs(component.spec, plain, seed);
  if (baseline_dispatches(component, completed(component.spec.signature, plain)) == 0)
    if (const std::int64_t operators = operators_of(component, plain, generated); operators > options.most_operators)
      return "the baseline takes " + std::to_string(operators) + " operators";
  if (!setting.device.is_simt()) return "";
  const std::uint64_t before = kernels::simt::host_turns();
  try {
    (void)variant_outputs(component, cell.variant, setting, generated);
  } catch (const std::exception&) {  // that is for the checks to find
    return "";
  }
  const std::uint64_t turns = kernels::simt::host_turns() - before;
  return turns > options.most_turns ? "the threads on the host take " + std::to_string(turns) + " turns" : "";
}

// What failed narrowly is judged with the next seeds that are a case: a wrong variant fails again. The rows of the last
// of them; `reason`, added to, says which one failed and did not again.
std::vector<CheckResult> judged_again(const Cell& cell, const Setting& setting, std::uint64_t seed,
                                      const std::vector<CheckResult>& failed, const ParityOptions& options,
                                      SharedCases& cases, std::string& reason) {
  constexpr int kWanted = 4, kMost = 8;
  std::vector<CheckResult> rows;
  int right = 0;
  for (int again = 1; again <= kMost && right < kWanted; ++again) {
    const std::uint64_t now = seed + static_cast<std::uint64_t>(again) * kNextSeed;
    auto other = check_cell(*cell.component, cell.variant, setting, now, options, cases);
    if (holds(other)) {
      rows = std::move(other);
      ++right;
    } else if (!only_comparisons_failed(other) || cases.of(*cell.component, setting, now).no_case().empty()) {
      return failed;
    }
  }
  if (right < kWanted) return failed;
  const auto first = std::find_if(failed.begin(), failed.end(), broken);
  reason += "; failed narrowly there (" + first->check + ": " + first->reason + ") and not with " +
            std::to_string(kWanted) + " seeds more";
  return rows;
}

}  // namespace

std::vector<CheckResult> judge_cell(const Component& component, Variant variant, const Setting& setting,
                                    std::uint64_t seed, const ParityOptions& options, SharedCases& cases) {
  std::vector<CheckResult> first;
  std::string why_again;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::uint64_t now = seed + static_cast<std::uint64_t>(draw) * kNextSeed;
    auto rows = check_cell(component, variant, setting, now, options, cases);
    if (draw == 0 && compares_little(rows) && !is_large(setting.input_case))
      if (const auto more = next_compared(component, setting, seed, cases, why_again)) {
        now = seed = *more;
        rows = check_cell(component, variant, setting, now, options, cases);
      }
    const bool excusable = !holds(rows) && only_comparisons_failed(rows);
    const std::string why = excusable ? cases.of(component, setting, now).no_case() : "";
    if (why.empty()) {
      if (!why_again.empty()) rows.insert(rows.begin(), note("drawn_again", now, why_again));
      return rows;
    }
    if (draw == 0) first = std::move(rows);
    why_again += (why_again.empty() ? "" : "; ") + ("seed " + std::to_string(now) + " is no case: " + why);
  }
  return first;
}

std::vector<CheckResult> judge_held_out(const Cell& cell, const std::string& text, const ParityOptions& options,
                                        SharedCases& cases) {
  std::vector<CheckResult> gross;
  std::string why;
  for (int number = 0; number < kHeldOutDraws; ++number) {
    const HeldOutDraw draw = held_out_draw(*cell.component, text, number, false);
    try {
      const Cell drawn{cell.component, cell.variant, cell.device, cell.dtype, &draw.input_case};
      const Setting setting = drawn.setting();
      if (drawn.device.takes_cuda_path()) check_card_limits(cell.component->spec, setting);
      why = too_long(cell, setting, draw.seed, options);
      if (!why.empty()) continue;
      SharedCase& drawn_case = cases.of(*cell.component, setting, draw.seed);
      // Of one or two elements, say, from which no wrong answer can be told, or where close decisions leave most out. A
      // baseline that fails itself has no such excuse.
      why = drawn_case.vacuity().reason;
      if (why.empty()) why = drawn_case.reference().left_out();
      CheckResult control;
      drawn_case.reference().judge(drawn_case.reference().baseline(), control);
      const bool its_own_fault = broken(control) && drawn_case.no_case().empty();
      if (!why.empty() && !its_own_fault) continue;
      auto rows = check_cell(*cell.component, cell.variant, setting, draw.seed, options, cases);
      why = !holds(rows) && only_comparisons_failed(rows) ? drawn_case.no_case() : "";
      std::string drawn_text = draw.text + (number > 0 ? ", draw " + std::to_string(number + 1) : "");
      if (its_own_fault) {
        control.check = "oracle";
        rows.push_back(control);
      } else if (why.empty() && !holds(rows) && only_comparisons_failed(rows) && narrowly_wrong(rows)) {
        rows = judged_again(cell, setting, draw.seed, rows, options, cases, drawn_text);
      }
      rows.insert(rows.begin(), note(kHeldOut, draw.seed, drawn_text));
      if (why.empty()) return rows;
      // What failed on inputs that are no case says nothing, but for what no honest arithmetic is likely to be.
      if (gross.empty() && plainly_wrong(rows)) gross = std::move(rows);
    } catch (const Error& refusal) {
      why = refusal.what();
    }
  }
  if (!gross.empty()) return gross;
  CheckResult none;
  none.check = kHeldOut;
  none.skip("no draw of " + std::to_string(kHeldOutDraws) + " is a case: " + why);
  return {none};
}

}  // namespace twinbench
