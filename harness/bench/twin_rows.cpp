// Rows of timings and speedups.
#include "harness/bench/twin_rows.h"

#include <ATen/ATen.h>

#include "harness/timing/record.h"

namespace twinbench {
namespace {

using nlohmann::json;

bool agree(const at::Tensor& now, const at::Tensor& then, double relative) {
  if (!then.is_floating_point()) return now.eq(then).all().item<bool>();
  const auto both_nan = now.isnan().logical_and(then.isnan());
  if (relative == 0) return now.eq(then).logical_or(both_nan).all().item<bool>();
  if (!now.isnan().eq(then.isnan()).all().item<bool>()) return false;
  const auto before = then.masked_fill(both_nan, 0).to(at::kDouble), after = now.masked_fill(both_nan, 0).to(at::kDouble);
  const auto apart = (after - before).masked_fill(before.eq(after), 0);  // equal infinities are no difference
  return apart.norm().item<double>() <= relative * before.norm().item<double>();
}

}  // namespace

std::string difference(const NamedTensors& now, const NamedTensors& then, double relative) {
  for (const auto& [name, tensor] : then) {
    const auto& other = now[name];
    if (!other.sizes().equals(tensor.sizes())) return "output " + name + " changed its shape while it was timed";
    if (!agree(other, tensor, relative)) return "output " + name + " of the last timed run differs from that of the first run";
  }
  return "";
}

json timing_row(const Cell& cell, const std::string& regime, const Cost& cost, const std::vector<double>& samples_s, std::int64_t iterations) {
  json row = {{"cell", cell.name()}, {"verdict", "pass"}, {"reason", ""}, {"regime", regime},
              {"n", samples_s.size()}, {"median_s", nullptr}, {"q1_s", nullptr}, {"q3_s", nullptr}, {"minimum_s", nullptr},
              {"samples_s", samples_s}, {"iterations_per_sample", iterations}, {"bytes", cost.bytes}, {"flops", cost.flops},
              {"floor_s", nullptr}, {"impossible_below_s", nullptr}, {"roofline_fraction", nullptr}, {"bound", nullptr}};
  if (!samples_s.empty()) {
    row.update(timing_fields(samples_s));
    return row;
  }
  row["verdict"] = "error";
  row["reason"] = "no sample was taken";
  return row;
}

std::string judge_against_floor(json& row, const Cell& cell, const Cost& cost, const std::vector<Ceiling>& ceilings, double cache_bytes,
                                const std::function<Ceiling(const std::string& name)>& remeasure) {
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
  const std::string reason = "faster than the physical floor, also under a ceiling measured again: the work was not done";
  fail(row, reason);
  return reason;
}

void fail(json& row, const std::string& reason) {
  row["verdict"] = "fail";
  row["reason"] = reason;
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

void doubt(json& speedup, const std::string& reason) {
  const std::string before = speedup["reason"];
  speedup["verdict"] = "inconclusive";
  speedup["reason"] = reason + (before.empty() ? "" : "; " + before);
}

}  // namespace twinbench
