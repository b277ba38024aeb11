// Counting passes over runnables.
#include "harness/counters/count_component.h"

#include "harness/compare/inputs.h"
#include "harness/counters/counter_scope.h"
#include "harness/counters/excused_counts.h"
#include "harness/counters/process_calls.h"
#include "harness/gpu/nvtx_range.h"
#include "harness/memory/tracked_allocator.h"
#include "src/common/error.h"

namespace twinbench {

namespace {

// Inputs stay alive beside the runnable that reads them.
struct Subject {
  NamedTensors inputs;
  std::unique_ptr<Runnable> runnable;
  std::vector<Choice> choices;
};

Subject set_up(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed, int warm_up) {
  TrackedAllocator::instance();  // before the blocks whose frees will be counted
  Subject subject;
  subject.inputs = placed_inputs(generated_inputs(component.spec, setting, seed), setting.dtype, setting.device);
  {
    const ChoiceWatch watch;
    subject.runnable = component.make(variant, subject.inputs, setting);
    subject.choices = watch.made();
  }
  for (int run = 0; run < warm_up; ++run) {
    subject.runnable->start_over();
    subject.runnable->run();
  }
  return subject;
}

// With `process_calls`, in a run of its own: observing operators takes memory too.
CounterSnapshot count_one(Runnable& runnable, bool process_calls, CounterScope::Settings settings) {
  runnable.start_over();
  CounterSnapshot counts;
  {
    const CounterScope scope(settings);
    runnable.run();
    counts = scope.snapshot();
  }
  if (!process_calls) return counts;
  runnable.start_over();
  const ProcessCallScope scope;
  runnable.run();
  counts.process_calls = scope.counts();
  return counts;
}

}  // namespace

CountedRun count_run(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                     int warm_up) {
  const Subject subject = set_up(component, variant, setting, seed, warm_up);
  const NvtxRange range(Cell{&component, variant, setting.device, setting.dtype, &setting.input_case}.name(),
                        "counted");
  // A baseline may ask the process for what it likes; simt's own machinery does.
  const bool process_calls = variant == Variant::kOptimized && setting.device.is_cpu();
  CounterScope::Settings settings = CounterScope::default_settings();
  settings.layouts = variant != Variant::kOptimized && setting.device.is_cpu();
  const CounterSnapshot first = count_one(*subject.runnable, process_calls, settings);
  CounterSnapshot second = count_one(*subject.runnable, process_calls, settings);
  if (variant == Variant::kLibrary) second = with_settled_peak(second, first);
  const std::string changed = difference(comparable(first, component.spec, variant, setting),
                                         comparable(second, component.spec, variant, setting));
  if (!changed.empty())
    throw Error(ErrorKind::kInternal, component.spec.id() + " " + to_string(variant) + " counters", changed,
                "two steady runs must count the same; look for caches, lazy setup or randomness in run()");
  CountedRun counted{first, {}, subject.choices};
  for (const auto& proof : component.spec.proof)
    if (proof.of_result && counted.outputs.empty())
      for (const auto& [name, tensor] : subject.runnable->outputs()) counted.outputs.set(name, tensor.detach().clone());
  return counted;
}

std::vector<ProofResult> check_proof(const Component& component, const Setting& setting, std::uint64_t seed) {
  if (component.spec.proof.empty()) return {};
  return check_proof(component, setting, count_run(component, Variant::kBaseline, setting, seed),
                     count_run(component, Variant::kOptimized, setting, seed));
}

std::vector<ProofResult> check_proof(const Component& component, const Setting& setting, const CountedRun& baseline,
                                     const CountedRun& optimized) {
  std::vector<ProofResult> results;
  for (const auto& proof : component.spec.proof) {
    const auto expected = [&](Variant variant, const CountedRun& run) {
      if (proof.of_result) return proof.of_result(variant, run.outputs, setting);
      return variant == Variant::kBaseline ? proof.baseline(setting) : proof.optimized(setting);
    };
    ProofResult result{proof.counter,
                       proof.formula,
                       expected(Variant::kBaseline, baseline),
                       baseline.counters.value(proof.counter),
                       expected(Variant::kOptimized, optimized),
                       optimized.counters.value(proof.counter),
                       false,
                       ""};
    const auto add = [&](const char* twin, std::int64_t due, std::int64_t measured, bool chose, Variant variant) {
      if (fits_formula(proof.counter, due, measured, chose, variant, setting)) return;
      result.reason += (result.reason.empty() ? "" : "; ") + std::string("the ") + twin + " has " + proof.counter +
                       " = " + std::to_string(measured) + " instead of " + std::to_string(due);
    };
    add("baseline", result.baseline_expected, result.baseline_measured, !baseline.choices.empty(), Variant::kBaseline);
    add("optimized twin", result.optimized_expected, result.optimized_measured, !optimized.choices.empty(),
        Variant::kOptimized);
    result.pass = result.reason.empty();
    if (result.pass && result.baseline_expected == result.optimized_expected)
      result.reason =
          "both twins have " + std::to_string(result.baseline_expected) + " at this size: it shows no sin here";
    results.push_back(result);
  }
  return results;
}

std::string device_limits_broken(const Cell& cell, const CounterSnapshot& measured, bool chose) {
  if (cell.variant != Variant::kOptimized || !cell.device.takes_cuda_path()) return "";
  const ComponentSpec& spec = cell.component->spec;
  const Setting setting = cell.setting();
  std::string broken;
  const auto add = [&](const std::string& text) { broken += (broken.empty() ? "" : "; ") + text; };
  const std::int64_t launches = measured.value("launches"), products = measured.value("products");
  if (spec.most_launches && !setting.backward() && launches + products > spec.most_launches(setting))
    add("a run launches " + std::to_string(launches) + " kernels and " + std::to_string(products) +
        " products, the specification allows " + std::to_string(spec.most_launches(setting)));
  for (const auto& proof : spec.proof)
    if (!proof.of_result && !fits_formula(proof.counter, proof.optimized(setting), measured.value(proof.counter), chose,
                                          cell.variant, setting))
      add(proof.counter + " = " + std::to_string(measured.value(proof.counter)) + " instead of " +
          std::to_string(proof.optimized(setting)));
  return broken;
}

GrowthResult check_growth(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                          int runs) {
  const Subject subject = set_up(component, variant, setting, seed, 2);
  GrowthResult result;
  result.runs = runs;
  const CounterScope scope;
  for (int run = 0; run < runs; ++run) {
    subject.runnable->start_over();
    subject.runnable->run();
  }
  result.bytes = scope.snapshot().live_bytes;
  result.pass = result.bytes == 0;
  if (!result.pass)
    result.reason = std::to_string(result.bytes) + " bytes of tensor memory more after " + std::to_string(runs) +
                    " runs than before";
  return result;
}

}  // namespace twinbench
