// Pairs the variants, keeps every sample, checks what the timed runs computed and adds the distance from the floor.
#include "harness/bench/twin_timing.h"

#include <ATen/ATen.h>
#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/compare/inputs.h"
#include "harness/parity/reference.h"
#include "harness/timing/null_comparison.h"
#include "harness/timing/paired.h"
#include "harness/timing/record.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

using nlohmann::json;

// Inputs and both ends of a timed variant's life: set up once, run many times, outputs read at the end.
struct TimedVariant {
  Cell cell;
  std::unique_ptr<Runnable> runnable;
  std::vector<double> samples;
  std::int64_t iterations = 1;
  std::string broken;  // why its time is worth nothing
};

// Bitwise, NaN equal to NaN: the same variant on the same inputs has no reason to answer anything else.
std::string difference(const Values& now, const Values& then) {
  for (const auto& [name, tensor] : then) {
    const auto& other = now[name];
    if (!other.sizes().equals(tensor.sizes())) return "output " + name + " changed its shape while it was timed";
    const auto same = tensor.is_floating_point() ? other.eq(tensor).logical_or(other.isnan().logical_and(tensor.isnan())) : other.eq(tensor);
    if (!same.all().item<bool>()) return "output " + name + " of the last timed run differs from that of the first run";
  }
  return "";
}

Side side_of(const TimedVariant& timed) {
  Side side;
  side.name = timed.cell.name();
  side.run = [runnable = timed.runnable.get()] { runnable->run(); };
  // Device work is asynchronous: a sample ends when the device has done it.
  if (timed.cell.device == c10::DeviceType::CUDA) side.finish = [] { at::detail::getCUDAHooks().deviceSynchronize(0); };
  return side;
}

json timing_row(const TimedVariant& timed, const Cost& cost, const std::vector<Ceiling>& ceilings) {
  json row = {{"cell", timed.cell.name()}, {"verdict", "pass"}, {"reason", ""}, {"regime", timed.cell.component->spec.regime},
              {"n", timed.samples.size()}, {"median_s", nullptr}, {"q1_s", nullptr}, {"q3_s", nullptr}, {"minimum_s", nullptr},
              {"samples_s", timed.samples}, {"iterations_per_sample", timed.iterations}, {"bytes", cost.bytes}, {"flops", cost.flops},
              {"floor_s", nullptr}, {"impossible_below_s", nullptr}, {"roofline_fraction", nullptr}, {"bound", nullptr}};
  if (timed.samples.empty()) {
    row["verdict"] = "error";
    row["reason"] = "no sample was taken";
    return row;
  }
  row.update(timing_fields(timed.samples));
  const double median_s = row["median_s"];
  const std::string device = timed.cell.device == c10::DeviceType::CUDA ? "cuda" : "cpu";
  const auto judged = judge_floor(cost, ceilings, device, timed.cell.dtype, last_level_cache_bytes(), median_s, measure_cpu_ceiling);
  if (judged.floor.seconds > 0) {
    row["floor_s"] = judged.floor.seconds;
    row["roofline_fraction"] = judged.floor.seconds / median_s;
    row["bound"] = judged.floor.bound;
    if (judged.floor.physical) row["impossible_below_s"] = judged.floor.seconds / kBeyondFloor;
  }
  if (judged.beyond) {
    row["verdict"] = "fail";
    row["reason"] = "faster than the physical floor, also under a ceiling measured again: the work was not done";
  }
  if (!timed.broken.empty()) {
    row["verdict"] = "fail";
    row["reason"] = timed.broken;
  }
  return row;
}

json speedup_row(const Twin& twin, Variant from, Variant to, const PairedResult& result) {
  json row = speedup_fields(result);
  row["component"] = twin.component->spec.id();
  row["device"] = twin.device == c10::DeviceType::CUDA ? "cuda" : "cpu";
  row["dtype"] = to_string(twin.dtype);
  row["case"] = twin.input_case->name;
  row["from"] = to_string(from);
  row["to"] = to_string(to);
  row["regime"] = twin.component->spec.regime;
  return row;
}

PairedOptions paired_options(const TwinTimingOptions& options) {
  PairedOptions paired;
  paired.max_pairs = options.max_pairs;
  paired.time_budget_s = options.seconds;
  paired.target_half_width = options.target_half_width;
  paired.seed = options.seed;
  paired.clock_quality = options.clock;
  // Slow baselines take one run a sample: many pairs tell more than long samples.
  paired.sample.maximum_sample_s = 0.05;
  return paired;
}

}  // namespace

std::string Twin::name() const {
  return component->spec.id() + "/" + (device == c10::DeviceType::CUDA ? "cuda" : "cpu") + "/" + to_string(dtype) + "/" + input_case->name;
}

Cell Twin::cell(Variant variant) const { return {component, variant, device, dtype, input_case}; }

std::vector<Variant> Twin::variants() const {
  std::vector<Variant> variants = {Variant::kBaseline, Variant::kOptimized};
  if (component->library && input_case->pass == Pass::kForward) variants.push_back(Variant::kLibrary);
  return variants;
}

std::vector<Twin> twins_of(const std::vector<Cell>& cells) {
  std::vector<Twin> twins;
  std::set<std::string> seen;
  for (const auto& cell : cells) {
    const Twin twin{cell.component, cell.device, cell.dtype, cell.input_case};
    if (cell.input_case->timed && seen.insert(twin.name()).second) twins.push_back(twin);
  }
  return twins;
}

json time_twin(const Twin& twin, const TwinTimingOptions& options, const std::vector<Ceiling>& ceilings) {
  const auto setting = twin.cell(Variant::kBaseline).setting();
  const auto inputs = placed_inputs(generated_inputs(twin.component->spec, setting, options.seed), setting.dtype, setting.device);
  std::map<Variant, TimedVariant> timed;
  std::map<Variant, Values> first;
  for (const auto variant : twin.variants()) {
    TimedVariant one{twin.cell(variant), twin.component->factory(variant, twin.device)(inputs, setting), {}, 1, ""};
    one.runnable->run();
    first[variant] = copied_outputs(*one.runnable);
    timed.emplace(variant, std::move(one));
  }
  json result = {{"timings", json::array()}, {"speedups", json::array()}};
  const auto compare = [&](Variant from, Variant to) {
    const auto paired = measure_pair(side_of(timed.at(from)), side_of(timed.at(to)), paired_options(options));
    for (auto [variant, samples, iterations] : {std::tuple{from, &paired.samples_a, paired.iterations_a}, {to, &paired.samples_b, paired.iterations_b}})
      if (timed.at(variant).samples.empty()) {
        timed.at(variant).samples = *samples;
        timed.at(variant).iterations = iterations;
      }
    return paired;
  };
  std::vector<std::tuple<Variant, Variant, PairedResult>> comparisons;
  comparisons.emplace_back(Variant::kBaseline, Variant::kOptimized, compare(Variant::kBaseline, Variant::kOptimized));
  if (timed.count(Variant::kLibrary)) comparisons.emplace_back(Variant::kLibrary, Variant::kOptimized, compare(Variant::kLibrary, Variant::kOptimized));

  const Cost cost = twin.component->spec.cost ? twin.component->spec.cost(setting) : Cost{};
  for (auto& [variant, one] : timed) {
    one.broken = difference(one.runnable->outputs(), first.at(variant));
    result["timings"].push_back(timing_row(one, cost, ceilings));
  }
  for (const auto& [from, to, paired] : comparisons) {
    auto row = speedup_row(twin, from, to, paired);
    const std::string broken = timed.at(from).broken + timed.at(to).broken;
    if (!broken.empty()) {
      row["verdict"] = "inconclusive";
      row["reason"] = broken;
      row["ratio"] = row["lower"] = row["upper"] = nullptr;
    }
    result["speedups"].push_back(std::move(row));
  }
  return result;
}

json null_test_row(const std::vector<Twin>& twins, const TwinTimingOptions& options) {
  NullTest null;
  for (const auto& twin : twins) {
    const auto cell = twin.cell(Variant::kOptimized);
    const auto setting = cell.setting();
    const auto inputs = placed_inputs(generated_inputs(twin.component->spec, setting, options.seed), setting.dtype, setting.device);
    const auto runnable = twin.component->factory(Variant::kOptimized, twin.device)(inputs, setting);
    runnable->run();
    Side side;
    side.name = cell.name();
    side.run = [&] { runnable->run(); };
    null.add(cell.name(), measure_pair(side, side, paired_options(options)));
  }
  return to_json(null);
}

}  // namespace twinbench
