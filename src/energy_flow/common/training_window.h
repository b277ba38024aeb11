// One optimizer window of the training step (C24): its rows, what is counted across windows, what a window tells, and
// the setting in which its flows go.
#pragma once

#include <c10/util/accumulate.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "src/common/error.h"
#include "src/common/parameter_arena.h"
#include "src/inputs.h"

namespace twinbench::energy_flow::train_step {

// Places of the state `counts`. Applied windows are the global step; every window that has rows is an attempt.
enum Count : std::int64_t { kApplied, kSkippedSteps, kAttempts, kScaleExponent, kGoodSteps, kCounts };

// Places of the output `record`.
enum Record : std::int64_t { kSkippedMicro, kSanitisedRows, kStatus, kRecord };

// Places of the output `work`: what a run did, of which the baseline's formulas are made.
enum Work : std::int64_t {
  kFlowForwards,  // calls, and samples in them
  kFlowSamples,
  kMapperSamples,
  kFlowSteps,
  kStopTests,
  kPlacedFlows,
  kCollectedFlows,
  kTrims,
  kTapePeak,  // bytes
  kTapeLeft,
  kSnapshots,
  kDeviceSyncs,
  kFiniteChecks,
  kDecodes,  // texts, and tokens of them
  kDecodedTokens,
  kWorkColumns
};

// Places of the output `anomaly`: of a window that is looked through, the first stage whose result is not all numbers,
// and its micro-step; -1 and -1 where there is none. From kGradientStage on: each gradient that there is, in the
// parameters' order.
enum Anomaly : std::int64_t { kAnomalyMicroStep, kAnomalyStage, kAnomalyColumns };
enum WindowStage : std::int64_t {
  kInputStage,  // as staged, sanitised or not
  kTargetStage,
  kEnergyStage,  // mapped inputs
  kGoalStage,    // mapped targets
  kSurfaceStage,
  kEncodedStage,  // surfaces of texts, where they are encoded
  kLossStage,
  kGradientStage
};

constexpr std::int64_t kFirstExponent = 16, kMostExponent = 24, kGoodStepsToDouble = 2000;  // of the loss scale

struct Window {
  explicit Window(const Setting& s)
      : micro_steps(s.size("micro_steps")),
        micro_batch(s.size("micro_batch")),
        missing(static_cast<std::int64_t>(s.option("missing_rows"))),
        accumulation(std::max(micro_steps, static_cast<std::int64_t>(s.option("accumulation")))) {
    if (missing > micro_batch)
      throw Error(ErrorKind::kOutOfRange, "missing_rows", std::to_string(missing),
                  "a micro-batch is short by its rows at most: give 0 to " + std::to_string(micro_batch) +
                      ", or a larger micro_batch");
  }

  std::int64_t rows_of(std::int64_t micro_step) const {
    return micro_step + 1 < micro_steps ? micro_batch : micro_batch - missing;
  }
  std::int64_t rows() const { return micro_steps * micro_batch - missing; }
  // Of a micro-step's loss: every row of the window weighs the same, however it is split.
  double share_of(std::int64_t micro_step) const {
    return static_cast<double>(rows_of(micro_step)) / static_cast<double>(micro_batch * accumulation);
  }
  // Of the gradients of a window that has fewer rows than it could.
  double rescaling() const { return static_cast<double>(accumulation * micro_batch) / static_cast<double>(rows()); }

  const std::int64_t micro_steps, micro_batch, missing, accumulation;
};

// What a set-up is told beside texts. Throws kOutOfRange.
inline void check_window(const NamedTensors& inputs, const Setting& s) {
  constexpr std::int64_t kMostExponentOfFloats = 127;  // a larger power of two is none of fp32's
  (void)Window(s);
  check_update_counts(inputs["counts"]);
  const std::int64_t exponent = inputs["counts"][kScaleExponent].item<std::int64_t>();
  if (exponent > kMostExponentOfFloats)
    throw Error(ErrorKind::kOutOfRange, "counts",
                std::to_string(exponent) + " at [" + std::to_string(kScaleExponent) + "]",
                "the loss scale is a power of two: give its exponent, 0 to " + std::to_string(kMostExponentOfFloats));
}

// In which `samples` samples go forward and back.
inline Setting flow_setting(Setting s, std::int64_t samples, std::int64_t attempt, std::int64_t global_step) {
  s.input_case.sizes["samples"] = samples;
  s.input_case.pass = Pass::kBackward;
  s.input_case.options["attempt"] = static_cast<double>(attempt);
  s.input_case.options["global_step"] = static_cast<double>(global_step);
  for (const char* option : {"captured_steps", "keep_everything", "ckpt_every", "tape_budget"})
    s.input_case.options[option] = 0;
  return s;
}

// Whether texts are encoded: with a weight of 0 their loss counts for nothing (C23).
inline bool encodes(const Setting& s) { return s.on("text_bridge") && s.option("text_loss_weight") > 0; }

// The parameters in the order of the arena: the flows', of which those of the child head come last and have a gradient
// in gate mode alone; the text encoder's, which have one where texts are encoded.
inline std::vector<InputSpec> trained_parameters(const Setting& s) {
  std::vector<InputSpec> trained = inputs_of(*s.signature, s);
  std::erase_if(trained, [](const InputSpec& input) {
    return input.role != Role::kState || input.name == "first_moment" || input.name == "second_moment" ||
           input.name == "counts";
  });
  return trained;
}
inline bool has_gradient(const std::string& parameter, const Setting& s) {
  if (parameter.starts_with("encoder_")) return encodes(s);
  return s.option("spawn") == 2 || !parameter.starts_with("child_");
}
// Elements of the arena from `first` on.
struct Stretch {
  std::int64_t first = 0, count = 0;
};
// Of the parameters that have a gradient, one after the other; `joined`: neighbours as one.
inline std::vector<Stretch> with_gradient(const Setting& s, bool joined) {
  std::vector<Stretch> stretches;
  std::int64_t from = 0;
  for (const InputSpec& one : trained_parameters(s)) {
    const std::int64_t count = c10::multiply_integers(extents(one.shape, s));
    if (has_gradient(one.name, s)) {
      if (joined && !stretches.empty() && stretches.back().first + stretches.back().count == from)
        stretches.back().count += count;
      else
        stretches.push_back({from, count});
    }
    from += count;
  }
  return stretches;
}

// What an anomaly is reported as.
inline std::string stage_name(std::int64_t stage, const Setting& s) {
  constexpr const char* kNames[] = {"input",         "target", "initial energies", "target surface", "surface",
                                    "encoded texts", "loss"};
  if (stage < 0) return "none";
  if (stage < kGradientStage) return kNames[stage];
  std::vector<InputSpec> trained = trained_parameters(s);
  std::erase_if(trained, [&](const InputSpec& one) { return !has_gradient(one.name, s); });
  return "gradient of " + trained.at(static_cast<std::size_t>(stage - kGradientStage)).name;
}

}  // namespace twinbench::energy_flow::train_step
