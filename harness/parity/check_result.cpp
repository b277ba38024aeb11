// Verdict words and the record's parity row.
#include "harness/parity/check_result.h"

#include <cmath>

namespace twinbench {

namespace {

// Strict JSON has no infinity: beyond any number is null, which cannot pass.
nlohmann::json finite_or_null(double value) {
  if (!std::isfinite(value) || value >= 1e30) return nullptr;
  return value;
}

}  // namespace

const char* name_of(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::kPass: return "pass";
    case CheckVerdict::kFail: return "fail";
    case CheckVerdict::kError: return "error";
    case CheckVerdict::kSkip: return "skip";
  }
  return "error";
}

void CheckResult::fail(const std::string& why) {
  if (verdict == CheckVerdict::kFail) return;
  verdict = CheckVerdict::kFail;
  reason = why;
}

void CheckResult::fail_comparison(const std::string& why) {
  in_comparison = in_comparison || verdict != CheckVerdict::kFail;
  fail(why);
}

void CheckResult::fail_as(const CheckResult& judged, const std::string& where) {
  const std::string why = where + ": " + judged.reason;
  judged.in_comparison ? fail_comparison(why) : fail(why);
}

void CheckResult::skip(const std::string& why) {
  verdict = CheckVerdict::kSkip;
  reason = why;
}

nlohmann::json to_json(const std::string& cell, const CheckResult& result) {
  nlohmann::json outputs = nlohmann::json::array();
  for (const auto& row : result.outputs)
    outputs.push_back({{"name", row.name},
                       {"tolerance_class", row.tolerance_class},
                       {"max_absolute_error", finite_or_null(row.comparison.max_absolute_error)},
                       {"max_relative_error", finite_or_null(row.comparison.max_relative_error)},
                       {"rmse", finite_or_null(row.comparison.rmse)},
                       {"rmse_baseline", finite_or_null(row.comparison.rmse_baseline)},
                       {"worst_ratio", finite_or_null(row.comparison.worst_ratio)},
                       {"elements", row.comparison.elements}});
  nlohmann::json vacuity;
  if (result.vacuity) vacuity = {{"checked", result.vacuity->checked}, {"rejected", result.vacuity->rejected}};
  return {{"cell", cell},
          {"check", result.check},
          {"verdict", name_of(result.verdict)},
          {"reason", result.reason},
          {"seed", result.seed},
          {"seconds", result.seconds},
          {"outputs", outputs},
          {"vacuity", vacuity}};
}

}  // namespace twinbench
