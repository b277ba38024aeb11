// energy_flow.metrics (C29): the table of every optimizer window, added up over its micro-steps, and what is kept of
// timings and memory.
#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "src/common/not_finite.h"
#include "src/common/philox.h"
#include "src/energy_flow/common/metric_table.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow::metrics {
namespace {

Signature signature() {
  const Tolerance sum{Tolerance::Kind::kBound, {1e-6, 1e-30}, {1e-6, 1e-30}, "C29"},
      measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  const auto whole = [](InputSpec input) { return input.batch(std::nullopt).without_gradient(); };
  const auto result = [](OutputSpec output) { return output.batch(std::nullopt); };
  const auto step = [&](const char* name, const std::string& more, Element element) {
    return whole(keys(name, "windows, micro_steps" + more).of(element));
  };
  const std::string timings = c10::str(kTimingRing, ", ", kTimingKinds),
                    memory = c10::str(kMemoryRing, ", ", kMemoryKinds), table = c10::str("windows, ", kMetrics);
  return {
      .inputs = {whole(data("losses", c10::str("windows, micro_steps, ", kLossKinds), from_case(1))),
                 step("rows", "", Element::kInt64), step("sample_steps", ", samples", Element::kInt32),
                 step("reason", ", samples", Element::kInt32), step("flow_steps", ", samples", Element::kInt64),
                 step("counts", c10::str(", ", kCountKinds), Element::kInt64),
                 whole(data("gradient_norm", "windows", always("uniform", 2)).of(Element::kDouble)),
                 whole(data("learning_rate", "windows", always("uniform", 3)).of(Element::kDouble)),
                 whole(keys("clock", "windows, 3")), step("timings", c10::str(", ", kTimingKinds), Element::kInt64),
                 step("memory", c10::str(", ", kMemoryKinds), Element::kInt64), whole(keys("device", "windows, 2")),
                 whole(state("timing_ring", timings, not_drawn()).of(Element::kInt64)),
                 whole(state("memory_ring", memory, not_drawn()).of(Element::kInt64)),
                 whole(state("kept", "2", not_drawn()).of(Element::kInt64)),
                 whole(state("disabled", "1", not_drawn()).of(Element::kInt64))},
      .outputs = {result(output("metrics", table, sum).of(Element::kDouble)).with_nan(),
                  result(exact_output("present", table, Element::kBool)),
                  result(exact_output("timing_ring", timings, Element::kInt64)),
                  result(exact_output("memory_ring", memory, Element::kInt64)),
                  result(exact_output("kept", "2", Element::kInt64)),
                  result(exact_output("disabled", "1", Element::kInt64)),
                  // Of a variant's own: the baseline asks for all of them, every time.
                  result(output("evaluated", "1", measured).of(Element::kInt64))},
  };
}

std::int64_t* integers(const NamedTensors& inputs, const char* name) {
  return inputs[name].mutable_data_ptr<std::int64_t>();
}

void finish_micro_step(NamedTensors& inputs, const Setting& setting, std::uint64_t seed, std::int64_t step) {
  const auto word = [&](std::int64_t place, std::uint32_t stream) {
    return static_cast<std::int64_t>(philox(seed, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(place),
                                            0, philox_tag(PhiloxStream::kSyntheticData, stream))
                                         .w[0]);
  };
  const std::int64_t samples = setting.size("samples");
  integers(inputs, "rows")[step] = 1 + word(0, 11) % 16;
  for (std::int64_t i = step * samples; i < (step + 1) * samples; ++i) {
    const std::int64_t steps = std::int64_t{1} << word(i, 12) % 8;
    inputs["sample_steps"].mutable_data_ptr<std::int32_t>()[i] = static_cast<std::int32_t>(word(i, 13) % (steps + 1));
    inputs["reason"].mutable_data_ptr<std::int32_t>()[i] = static_cast<std::int32_t>(1 + word(i, 14) % kStopReasons);
    integers(inputs, "flow_steps")[i] = word(i, 15) % (std::int64_t{1} << 20);
  }
  for (std::int64_t kind = 0; kind < kCountKinds; ++kind)
    integers(inputs, "counts")[step * kCountKinds + kind] = word(kind, 16) % 97;
  for (std::int64_t kind = 0; kind < kTimingKinds; ++kind)
    integers(inputs, "timings")[step * kTimingKinds + kind] = 1'000'000 + word(kind, 18) % 1'000'000;
  std::int64_t* const bytes = integers(inputs, "memory") + step * kMemoryKinds;
  bytes[0] = std::int64_t{1} << 30 | word(0, 17) % (1 << 28);
  bytes[1] = bytes[0] + (1 << 28);
  bytes[2] = bytes[0] + word(1, 17) % (1 << 27);
  const auto bad = static_cast<std::int64_t>(setting.option("bad_every"));
  if (bad > 0 && step % bad == bad - 1)
    inputs["losses"].mutable_data_ptr<float>()[(step + 1) * kLossKinds - 1] = not_finite(step / bad);
}

void finish_inputs(NamedTensors& inputs, const Setting& setting, std::uint64_t seed) {
  const std::int64_t windows = setting.size("windows"), micro_steps = setting.size("micro_steps");
  for (std::int64_t step = 0; step < windows * micro_steps; ++step) finish_micro_step(inputs, setting, seed, step);
  const auto every = static_cast<std::int64_t>(setting.option("no_time_every")),
             slow = static_cast<std::int64_t>(setting.option("slow_window"));
  const bool there = setting.on("has_device");
  for (std::int64_t w = 0; w < windows; ++w) {
    const std::int64_t begin = 1'000'000'000 * (w + 1),
                       took = every > 0 && w % every == every - 1 ? 0 : 37'000'001 + 1000 * w;
    std::int64_t* const clock = integers(inputs, "clock") + 3 * w;
    clock[0] = begin, clock[1] = begin + took, clock[2] = took / (w + 1 == slow ? 15 : 300);
    integers(inputs, "device")[2 * w] = there ? 60 + w % 40 : kNotThere;
    integers(inputs, "device")[2 * w + 1] = there ? took * 2 / 3 : kNotThere;
    if (const auto kind = static_cast<std::int64_t>(setting.option("skipped_steps")); kind > 0 && w % 2 == 1)
      inputs["gradient_norm"].mutable_data_ptr<double>()[w] = not_finite(kind + 1);
  }
  const auto kept = static_cast<std::int64_t>(setting.option("kept_before"));
  integers(inputs, "kept")[0] = std::min(kept, kTimingRing);
  integers(inputs, "kept")[1] = std::min(kept, kMemoryRing);
  for (std::int64_t i = 0; i < kTimingRing * kTimingKinds; ++i) integers(inputs, "timing_ring")[i] = 7000 + i;
  for (std::int64_t i = 0; i < kMemoryRing * kMemoryKinds; ++i) integers(inputs, "memory_ring")[i] = 1000 + i;
  integers(inputs, "disabled")[0] = setting.on("disabled_before");
}

std::int64_t micro_steps_of(const Setting& s) { return s.size("windows") * s.size("micro_steps"); }

// Rows, five losses, five counts, norm and rate as they are; sums of flow-steps and steps, the most; a comparison, or
// three, and a sum for each reason and each bin.
std::int64_t baseline_reads(const Setting& s) {
  return micro_steps_of(s) * (1 + kLossKinds + kCountKinds + 2 + 3 + kStopReasons + kStepBins);
}
std::int64_t baseline_dispatches(const Setting& s) {
  return micro_steps_of(s) * (3 + 2 * kStopReasons + 4 * kStepBins);
}

// A record a window and what it is made of; of the rings, which are as long in every case, a quarter.
Cost cost(const Setting& s) {
  const double rings = 8.0 * (kTimingRing * kTimingKinds + kMemoryRing * kMemoryKinds);
  const auto [windows, micro_steps, samples] = real_sizes<3>(s, {"windows", "micro_steps", "samples"});
  return {rings / 4 + windows * (256 + micro_steps * (4 * kLossKinds + 8 + 8 * kCountKinds + 16 * samples)), 0};
}

// Independent of the variants: the parts of a whole, what is off, what the rings hold.
std::string impossible(const NamedTensors& inputs, const NamedTensors& outputs, const Setting& setting) {
  const at::Tensor metrics = outputs["metrics"].cpu().contiguous(), present = outputs["present"].cpu().contiguous();
  const auto categories = static_cast<std::int64_t>(setting.option("metric_categories"));
  const auto samples = static_cast<double>(setting.size("micro_steps") * setting.size("samples"));
  for (std::int64_t w = 0; w < setting.size("windows"); ++w) {
    const double* const row = metrics.const_data_ptr<double>() + w * kMetrics;
    const bool* const there = present.const_data_ptr<bool>() + w * kMetrics;
    for (std::int64_t metric = 0; metric < kMetrics; ++metric) {
      if (there[metric] && (categories & category_of(metric)) == 0)
        return c10::str("metric ", metric, " is off and there");
      if (!there[metric] && !std::isnan(row[metric]))
        return c10::str("metric ", metric, " is absent and ", row[metric]);
    }
    if (!there[kFirstBin]) continue;
    double reasons = 0, bins = 0;
    for (std::int64_t i = 0; i < kStopReasons; ++i) reasons += row[kFirstReason + i];
    for (std::int64_t i = 0; i < kStepBins; ++i) bins += row[kFirstBin + i];
    if (reasons != samples || bins != samples)
      return c10::str(reasons, " reasons and ", bins, " steps of ", samples, " samples");
    if (row[kMeanSteps] > row[kMostSteps]) return "the mean of the steps is above the most";
  }
  const at::Tensor kept = outputs["kept"].cpu(), before = inputs["kept"].cpu();
  const std::int64_t limits[] = {kTimingRing, kMemoryRing};
  for (std::int64_t ring = 0; ring < 2; ++ring) {
    const std::int64_t now = kept[ring].item<std::int64_t>(), then = before[ring].item<std::int64_t>();
    if (now > limits[ring] || now < then || now > then + micro_steps_of(setting))
      return c10::str("ring ", ring, " keeps ", now, " after ", then);
  }
  return "";
}

}  // namespace

ComponentSpec make_spec() {
  ComponentSpec spec;
  spec.signature = signature();
  spec.finish_inputs = finish_inputs;
  spec.proof = {{"scalar_reads", "", baseline_reads, nothing}, {"dispatches", "", baseline_dispatches, nothing}};
  spec.cost = cost;
  spec.most_launches = micro_steps_of;
  spec.invariants = {{"parts of a whole", impossible}};
  spec.refusals = {{"a clock that goes back",
                    [](NamedTensors& inputs, Setting&) { integers(inputs, "clock")[1] -= 2'000'000'000; },
                    ErrorKind::kOutOfRange, "clock"}};
  return spec;
}

}  // namespace twinbench::energy_flow::metrics
