// For tests of settings beyond the listed cases: each is judged as parity judges a case, with some numbers of threads.
#pragma once

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "harness/compare/inputs.h"
#include "harness/parity/beyond/far_sizes.h"
#include "harness/parity/reference.h"
#include "harness/parity/subject.h"
#include "harness/runner/components_in_turn.h"
#include "harness/runner/share.h"
#include "src/common/error.h"
#include "src/common/filter_pattern.h"

namespace twinbench {

// A sum a hundred times as long, in another order, may honestly err a little more than the rules for usual ones say.
constexpr double kMostRatio = 4;
inline bool is_nearly_right(const CheckResult& result) {
  return result.in_comparison && std::all_of(result.outputs.begin(), result.outputs.end(), [&](const OutputRow& row) {
           return row.comparison.accepted() || row.comparison.worst_ratio <= kMostRatio;
         });
}

constexpr std::size_t kEveryFarSetting = std::numeric_limits<std::size_t>::max();

struct FarJudgement {
  bool judged = false;  // else the component refuses the setting by a typed error, or it is no case
  std::string wrong;
};

// The optimized variant's outputs with so many threads. The path of a card has limits of its own, which it says.
inline NamedTensors far_answer(const FarSetting& far, const Setting& setting, const NamedTensors& generated,
                               int threads) {
  at::set_num_threads(threads);
  try {
    return variant_outputs(*far.component, Variant::kOptimized, setting, generated);
  } catch (const Error& error) {
    if (setting.device.is_cpu())
      throw Error(ErrorKind::kInternal, "the optimized variant", error.what(), "what the baseline answers, it answers");
    throw;
  }
}

// With one of these many threads the answer is judged; with the others of them, on the CPU, where it is another one:
// pieces that do not divide a size evenly have their own ends, and so do the many of a large machine.
constexpr std::array<int, 5> kFarThreads = {1, 2, 3, 5, 16};

// Whether the baseline's answer to inputs that differ by a rounding is as near as may be, and none of it so large that
// fp32 has no square of it: a modulus is infinite then, or is not, by how it is formed. Else the setting tells nothing.
// Outputs without a tolerance may be others where inputs are.
inline bool is_stable(const FarSetting& far, const Setting& setting, const NamedTensors& generated,
                      const Reference& reference) {
  constexpr double kRounding = 1.2e-7, kMostSquared = 1.8e19;
  NamedTensors moved;
  for (const auto& [name, tensor] : generated)
    moved.set(name, tensor.is_floating_point() ? tensor.mul(1 + kRounding) : tensor);
  const NamedTensors outputs = variant_outputs(*far.component, Variant::kBaseline, setting, moved);
  for (const auto& [name, tensor] : outputs)
    if (tensor.is_floating_point() && tensor.numel() > 0 &&
        tensor.to(at::kDouble).nan_to_num(0, 0, 0).abs().max().item<double>() > kMostSquared)
      return false;
  CheckResult result;
  reference.judge(outputs, result);
  return std::ranges::all_of(result.outputs, [](const OutputRow& row) {
    return row.tolerance_class == "exact" || row.comparison.accepted() || row.comparison.worst_ratio <= kMostRatio;
  });
}

inline FarJudgement far_judgement(const FarSetting& far, const Device& device) {
  try {
    const Setting setting = far.setting(device);
    const std::uint64_t first = name_hash(sample_of_tests() + far.name() + " threads");
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const NamedTensors generated = generated_inputs(far.component->spec, setting, seed);
      at::set_num_threads(1);
      const Reference reference(*far.component, setting, generated);
      NamedTensors judged_first;
      bool is_case = true;
      for (std::size_t turn = 0; is_case && turn < (device.is_cpu() ? kFarThreads.size() : 1); ++turn) {
        const int threads = kFarThreads[(first + turn) % kFarThreads.size()];
        const NamedTensors outputs = far_answer(far, setting, generated, threads);
        if (turn == 0)
          judged_first = outputs;
        else if (first_bit_difference(judged_first, outputs, 0).empty())
          continue;
        CheckResult result;
        reference.judge(outputs, result);
        if (result.reason.empty() || is_nearly_right(result)) continue;
        // Of so many items more lie on a decision margin than in a case; they are set aside, and the others judged.
        is_case = reference.plainly_rejects(outputs) || reference.no_case().empty();
        if (far.may_be_unstable) is_case = is_case && is_stable(far, setting, generated, reference);
        if (is_case) return {true, "with " + std::to_string(threads) + " threads: " + result.reason};
      }
      if (is_case) return {true, ""};
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) return {true, error.what()};
  } catch (const std::exception& untyped) {
    return {true, untyped.what()};
  }
  return {};
}

// Judges them, others first in each revision, until so many are judged: of the rest the component refuses the setting,
// or `judge` finds none. Says how many were.
template <class Judge>
std::size_t expect_far_right(const std::vector<FarSetting>& settings, std::size_t most, const Judge& judge) {
  std::size_t tried = 0, judged = 0;
  for (FarSetting far : in_turn(settings, [](const FarSetting& one) { return one.name(); })) {
    if (judged == most) break;
    const auto started = std::chrono::steady_clock::now();
    const FarJudgement judgement = judge(far);
    EXPECT_EQ(judgement.wrong, "") << far.name();
    ++tried;
    judged += judgement.judged;
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (std::getenv("TWINBENCH_FAR_TIMES"))
      std::printf("%7.3f s %s%s\n", seconds, far.name().c_str(), judgement.judged ? "" : " (none)");
  }
  at::set_num_threads(1);
  std::printf("TWINBENCH_SAMPLE=%s: %zu settings judged, %zu tried of %zu\n", sample_of_tests().c_str(), judged, tried,
              settings.size());
  return judged;
}

// Components that TWINBENCH_FAR_COMPONENTS names, an expression as of --filter; else all.
inline std::vector<const Component*> far_components(const Device& device) {
  const char* const wanted = std::getenv("TWINBENCH_FAR_COMPONENTS");
  std::vector<const Component*> all;
  for (const Component& component : components())
    if (component.supports(Variant::kOptimized, device, Dtype::kFp32) &&
        (!wanted || FilterPattern(wanted).found_in(component.spec.id())))
      all.push_back(&component);
  return all;
}

}  // namespace twinbench
