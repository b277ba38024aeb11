// One parity check of one cell: its verdict, why, and the numbers behind it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/compare/compare.h"
#include "harness/compare/vacuity.h"

namespace twinbench {

enum class CheckVerdict { kPass, kFail, kError, kSkip };

const char* name_of(CheckVerdict verdict);  // pass, fail, error, skip

struct OutputRow {
  std::string name;
  std::string tolerance_class;
  Comparison comparison;
  bool judged = true;  // false: close decisions take all of it out of the comparison
};

struct CheckResult {
  std::string check;  // oracle, vacuity, determinism, ...
  CheckVerdict verdict = CheckVerdict::kPass;
  std::string reason;  // never empty unless it passes
  std::uint64_t seed = 0;
  double seconds = 0;
  std::vector<OutputRow> outputs;
  std::optional<Vacuity> vacuity;
  // It failed in a comparison within a tolerance, which on inputs that are no case says nothing about who computed.
  bool in_comparison = false;

  void fail(const std::string& why);  // the first reason stays
  void fail_comparison(const std::string& why);
  void fail_as(const CheckResult& judged, const std::string& where);  // as `judged` failed: "<where>: <its reason>"
  void skip(const std::string& why);
};

// A row of the record's parity section.
nlohmann::json to_json(const std::string& cell, const CheckResult& result);

}  // namespace twinbench
