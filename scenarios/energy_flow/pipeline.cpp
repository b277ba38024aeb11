// Energy-flow scenario flow_step: real pairs -> surface energies -> one step of every flow, per flow against batched.
#include "scenarios/runner/pipeline.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>

#include "harness/compare/compare.h"
#include "harness/counters/counter_scope.h"
#include "harness/timing/paired.h"
#include "scenarios/energy_flow/flow_model.h"
#include "src/inputs.h"
#include "src/common/error.h"
#include "src/formats/convert.h"

namespace twinbench {
namespace {

using nlohmann::json;

// The first rows of the dataset: embeddings [batch, width] of the input side.
at::Tensor read_batch(const ScenarioConfig& config) {
  const std::string path = config.dataset == "default" ? "data/default.efds" : config.dataset;
  if (!std::filesystem::exists(path))
    throw Error(ErrorKind::kInputOutput, "scenario.dataset", path, "there is no such file; `twinbench data make --out " + path + "` makes it from real text");
  const auto dataset = read_any(path);
  const auto batch = config.sizes.at("batch"), width = config.sizes.at("embedding_width");
  if (dataset.width != width) throw Error(ErrorKind::kDimensionMismatch, "scenario.sizes.embedding_width", std::to_string(width), path + " has embeddings " + std::to_string(dataset.width) + " wide");
  if (dataset.rows < batch) throw Error(ErrorKind::kOutOfRange, "scenario.sizes.batch", std::to_string(batch), path + " has only " + std::to_string(dataset.rows) + " pairs");
  return at::from_blob(const_cast<float*>(dataset.inputs.data()), {batch, width}, at::kFloat).clone();
}

// Surface energies [batch, cells] by the optimized mapper; the mapper's own cells measure it.
at::Tensor surface_energies(const ScenarioConfig& config, const at::Tensor& embeddings) {
  const auto& mapper = find_component("energy_flow.embedding_mapper");
  Setting setting;
  for (const auto& input : mapper.spec.cases)
    if (input.name == "train") setting.input_case = input;
  setting.dtype = config.dtype;
  const auto set = [&](const std::string& size, std::int64_t value) {
    if (!setting.input_case.sizes.count(size)) throw Error(ErrorKind::kInternal, "embedding_mapper size", size, "the case 'train' has no such size");
    setting.input_case.sizes[size] = value;
  };
  set("rows", embeddings.size(0));
  set("embedding", embeddings.size(1));
  set("width", config.sizes.at("lattice_width"));
  set("height", config.sizes.at("lattice_height"));
  auto inputs = generate_inputs(mapper.spec, setting, config.seed);
  inputs.set(mapper.spec.signature.inputs.front().name, embeddings);
  const auto runnable = mapper.make(Variant::kOptimized, inputs, setting);
  runnable->run();
  return runnable->outputs()[mapper.spec.signature.outputs.front().name].clone();
}

// One flow a cell and sample, in (sample, y, x) order, at the start level; the hidden state is zero.
FlowState place_flows(const ScenarioConfig& config, const at::Tensor& surface) {
  const auto width = config.sizes.at("lattice_width"), height = config.sizes.at("lattice_height"), depth = config.sizes.at("lattice_depth");
  if (width < 2 || height < 2 || depth < 2) throw Error(ErrorKind::kOutOfRange, "scenario.sizes.lattice", std::to_string(width) + "x" + std::to_string(height) + "x" + std::to_string(depth), "each side needs 2 or more");
  const auto batch = surface.size(0), cells = width * height, flows = batch * cells;
  FlowState state;
  state.position = at::empty({flows, 3});
  state.sample_key = at::empty({flows}, at::kLong);
  state.local_id = at::empty({flows}, at::kLong);
  auto position = state.position.accessor<float, 2>();
  const float z = 2.0f * static_cast<float>(depth / 2) / static_cast<float>(depth) - 1.0f;
  for (std::int64_t f = 0; f < flows; ++f) {
    const auto cell = f % cells;
    position[f][0] = 2.0f * static_cast<float>(cell % width) / static_cast<float>(width - 1) - 1.0f;
    position[f][1] = 2.0f * static_cast<float>(cell / width) / static_cast<float>(height - 1) - 1.0f;
    position[f][2] = z;
    state.sample_key.data_ptr<std::int64_t>()[f] = f / cells;
    state.local_id.data_ptr<std::int64_t>()[f] = cell;
  }
  state.energy = surface.reshape({flows}).contiguous();
  state.hidden = at::zeros({config.sizes.at("carrier_layers"), flows, config.sizes.at("carrier_hidden")});
  return state;
}

FlowState widened(const FlowState& state) {
  return {state.position.to(at::kDouble), state.energy.to(at::kDouble), state.hidden.to(at::kDouble), state.sample_key, state.local_id};
}

CounterSnapshot counted(FlowStep& step) {
  step.run();
  CounterScope scope;
  step.run();
  return scope.snapshot();
}

json counters_json(const CounterSnapshot& snapshot) {
  json values;
  for (const auto& [name, field] : counter_fields()) values[name] = snapshot.*field;
  return values;
}

// Worst error / allowed over the step's outputs, and whether any is not finite. Class "step" of the specification.
struct StepParity {
  double worst = 0, non_finite = 0;
  std::string reason;
};

StepParity compare_steps(const NamedTensors& oracle, const NamedTensors& baseline, const NamedTensors& optimized, Dtype dtype) {
  StepParity parity;
  for (const auto& [name, tensor] : baseline) {
    OutputSpec spec{name, {tensor.is_floating_point() ? Tolerance::Kind::kBound : Tolerance::Kind::kExact, {1e-4, 1e-5}, {3e-2, 1e-2}, "step"}, 0, false};
    const auto result = compare(spec, oracle[name], tensor, optimized[name], dtype);
    if (!result.accepted()) {
      parity.reason += (parity.reason.empty() ? "" : "; ") + name + ": " + result.reason;
      parity.worst = std::max(parity.worst, 2.0);  // rejected by a rule that may have no ratio
    }
    parity.worst = std::max(parity.worst, result.worst_ratio);
    if (optimized[name].is_floating_point()) parity.non_finite += static_cast<double>(optimized[name].numel()) - at::isfinite(optimized[name]).sum().item<double>();
  }
  return parity;
}

json variant_row(const std::string& variant, bool extrapolated, std::int64_t measured_flows, double seconds, const std::vector<double>& samples, const CounterSnapshot& counters) {
  return {{"variant", variant}, {"extrapolated", extrapolated}, {"measured_flows", measured_flows}, {"seconds_per_step", seconds}, {"samples_s", samples}, {"counters", counters_json(counters)}};
}

}  // namespace

PipelineOutcome run_energy_flow(const ScenarioConfig& config, const PipelineOptions& options) {
  const auto surface = surface_energies(config, read_batch(config));
  const auto state = place_flows(config, surface);
  const auto all = state.flows();
  const auto few = config.baseline_flows == 0 ? all : std::min(config.baseline_flows, all);
  const auto few_state = state.first(few);

  const auto baseline = make_flow_step(Variant::kBaseline, config, few_state, config.dtype);
  const auto optimized = make_flow_step(Variant::kOptimized, config, state, config.dtype);
  const auto optimized_few = make_flow_step(Variant::kOptimized, config, few_state, config.dtype);
  const auto oracle = make_flow_step(Variant::kBaseline, config, widened(few_state), Dtype::kFp64);
  const auto baseline_counters = counted(*baseline), optimized_counters = counted(*optimized), few_counters = counted(*optimized_few);
  oracle->run();
  const auto parity = compare_steps(oracle->outputs(), baseline->outputs(), optimized_few->outputs(), config.dtype);
  double non_finite = parity.non_finite;
  for (const auto& [name, tensor] : optimized->outputs())
    if (tensor.is_floating_point()) non_finite += static_cast<double>(tensor.numel()) - at::isfinite(tensor).sum().item<double>();

  PairedOptions timing;
  timing.seed = config.seed;
  timing.max_pairs = static_cast<std::size_t>(options.quick ? std::min<std::int64_t>(config.pairs, 12) : config.pairs);
  timing.time_budget_s = config.seconds;
  timing.target_half_width = kReportHalfWidth;
  Side one, other;
  one.name = "baseline";
  one.run = [&] { baseline->run(); };
  other.name = "optimized";
  other.run = [&] { optimized->run(); };
  const auto paired = measure_pair(one, other, timing);
  const double scale = static_cast<double>(all) / static_cast<double>(few);  // per-flow cost is linear in flows

  PipelineOutcome outcome;
  for (const auto& [name, value] : config.sizes) outcome.configuration[name] = value;
  for (const auto& [name, value] : config.options) outcome.configuration[name] = value;
  outcome.configuration["flows"] = all;
  outcome.configuration["dtype"] = to_string(config.dtype);
  outcome.variants.push_back(variant_row("baseline", few != all, few, median(paired.samples_a) * scale, paired.samples_a, baseline_counters));
  outcome.variants.push_back(variant_row("optimized", false, all, median(paired.samples_b), paired.samples_b, optimized_counters));
  outcome.speedup = {{"ratio", paired.ratio * scale}, {"lower", nullptr}, {"upper", nullptr}, {"n", paired.n}, {"extrapolated", few != all}};
  auto& measures = outcome.measures;
  measures["speedup.lower"] = {std::nullopt, "too few pairs for an interval in the time budget"};
  if (paired.interval) {
    outcome.speedup["lower"] = paired.interval->lower * scale;
    outcome.speedup["upper"] = paired.interval->upper * scale;
    measures["speedup.lower"] = {paired.interval->lower * scale, ""};
  }
  const auto flows = static_cast<double>(few);
  measures["baseline.scalar_reads_per_flow"] = {static_cast<double>(baseline_counters.scalar_reads) / flows, ""};
  measures["baseline.dispatches_per_flow"] = {static_cast<double>(baseline_counters.dispatches) / flows, ""};
  measures["optimized.scalar_reads"] = {static_cast<double>(optimized_counters.scalar_reads), ""};
  measures["optimized.allocations"] = {static_cast<double>(optimized_counters.allocations), ""};
  measures["optimized.dispatches"] = {static_cast<double>(optimized_counters.dispatches), ""};
  measures["optimized.dispatches_growth"] = {static_cast<double>(optimized_counters.dispatches - few_counters.dispatches), ""};
  measures["parity.worst_ratio"] = {parity.worst, parity.reason};
  measures["outputs.non_finite"] = {non_finite, ""};
  measures["gpu.busy_fraction"] = {std::nullopt, "no GPU: utilisation is measured on a device only"};
  return outcome;
}

}  // namespace twinbench
