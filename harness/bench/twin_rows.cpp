// Rows of timings and speedups.
#include "harness/bench/twin_rows.h"

#include "harness/timing/record.h"

namespace twinbench {
using nlohmann::json;

json timing_row(const Cell& cell, const std::string& regime, const Cost& cost, const std::vector<double>& samples_s,
                std::int64_t iterations) {
  json row = {{"cell", cell.name()},
              {"verdict", "pass"},
              {"reason", ""},
              {"regime", regime},
              {"n", samples_s.size()},
              {"median_s", nullptr},
              {"q1_s", nullptr},
              {"q3_s", nullptr},
              {"minimum_s", nullptr},
              {"samples_s", samples_s},
              {"iterations_per_sample", iterations},
              {"bytes", cost.bytes},
              {"flops", cost.flops},
              {"floor_s", nullptr},
              {"impossible_below_s", nullptr},
              {"roofline_fraction", nullptr},
              {"bound", nullptr}};
  if (!samples_s.empty()) {
    row.update(timing_fields(samples_s));
    return row;
  }
  row["verdict"] = "error";
  row["reason"] = "no sample was taken";
  return row;
}

std::string judge_against_floor(json& row, const Cell& cell, const Cost& cost, const std::vector<Ceiling>& ceilings,
                                double cache_bytes, const std::function<Ceiling(const std::string& name)>& remeasure) {
  const double median_s = row["median_s"];
  const std::string device = cell.device == c10::DeviceType::CUDA ? "cuda" : "cpu";
  const auto judged = judge_floor(cost, ceilings, device, cell.dtype, cache_bytes, median_s, remeasure);
  if (judged.floor.seconds > 0) {
    row["floor_s"] = judged.floor.seconds;
    row["roofline_fraction"] = judged.floor.seconds / median_s;
    row["bound"] = judged.floor.bound;
    if (judged.impossible_below_s) row["impossible_below_s"] = *judged.impossible_below_s;
  }
  if (!judged.beyond) return "";
  const std::string reason =
      "faster than the physical floor, also under a ceiling measured again: the work was not done";
  fail(row, reason);
  return reason;
}

void fail(json& row, const std::string& reason) {
  row["verdict"] = "fail";
  row["reason"] = reason;
}

void reject(json& row, const std::string& rule) {
  row["verdict"] = "rejected";
  row["reason"] = rule;
}

json speedup_row(const Twin& twin, Variant from, Variant to, const std::string& regime, const PairedResult& result) {
  json row = speedup_fields(result);
  row["component"] = twin.component->spec.id();
  row["device"] = twin.device == c10::DeviceType::CUDA ? "cuda" : "cpu";
  row["dtype"] = to_string(twin.dtype);
  row["case"] = twin.input_case->name;
  row["from"] = to_string(from);
  row["to"] = to_string(to);
  row["regime"] = regime;
  return row;
}

void withdraw(json& speedup, const std::string& reason) {
  speedup["verdict"] = "inconclusive";
  speedup["reason"] = reason;
  speedup["ratio"] = speedup["lower"] = speedup["upper"] = nullptr;
}

void reject_speedup(json& speedup, const Cell& cell, const std::string& rule) {
  const std::string before = speedup["verdict"] == "rejected" ? speedup["reason"].get<std::string>() + "; " : "";
  withdraw(speedup, before + to_string(cell.variant) + ": " + rule);
  speedup["verdict"] = "rejected";
  speedup["log_ratios"] = json::array();
  if (!speedup.contains("decomposition")) return;
  for (auto& factor : speedup["decomposition"]) factor = nullptr;
  speedup["decomposition_reason"] = "rejected";
}

void doubt(json& speedup, const std::string& reason) {
  const std::string before = speedup["reason"];
  speedup["verdict"] = "inconclusive";
  speedup["reason"] = reason + (before.empty() ? "" : "; " + before);
}

}  // namespace twinbench
