// Every small cell at many seeds, and at sizes drawn at random: right answers pass, twins that round elsewhere do not.
// TWINBENCH_SWEEP_SEEDS and TWINBENCH_SWEEP_SIZES say how many; ci/slow asks for hundreds of seeds of every cell, and
// TWINBENCH_SWEEP_FIRST, the first seed or draw, chooses a part of them. Else seeds 1 to 5 go round the cells, each of
// which is judged at one of them.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "harness/compare/inputs.h"
#include "harness/compare/tolerance_table.h"
#include "harness/parity/reference.h"
#include "harness/parity/rounding_decisions.h"
#include "src/common/error.h"
#include "src/common/philox.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

int count_from(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

// The baseline with every rounding towards zero instead of to nearest.
class Truncating final : public RoundingObserver {
 public:
  at::Tensor observe(const at::Tensor& values, Dtype mode) override {
    EXPECT_EQ(mode, Dtype::kBf16);
    const at::Tensor bits = values.to(at::kFloat).contiguous().view(at::kInt);
    return bits.bitwise_and(~0xffff).view(at::kFloat).to(values.scalar_type());
  }
};

struct Tally {
  std::int64_t judged = 0;
  std::map<std::string, std::int64_t> failed;           // of right answers, by whose
  std::map<std::string, std::int64_t> wrong, rejected;  // twins that differ from the right answer at all
  std::vector<std::string> reasons;
  std::int64_t gradients = 0, cancelled = 0;  // of drawn sizes: judged, and set aside (Reference::cancelled)
};

using Names = std::vector<std::string>;

// The specification's absolute bounds are for its own widths. At drawn ones sums may be larger, so that eight times the
// baseline's RMSE, the element-wise rule's factor, is more than the bound: then that rule alone holds.
bool beyond_class(const Reference& reference, const OutputRow& row) {
  const Comparison& found = row.comparison;
  const double allowed = kBaselineElementFactor * found.rmse_baseline;
  for (const auto& spec : reference.outputs())
    if (spec.name == row.name && spec.tolerance.kind == Tolerance::Kind::kBound &&
        allowed > spec.tolerance.fp32.absolute && !reference.unsettled(row.name).defined())
      return found.max_absolute_error <= allowed && found.reason.find(": distance ") != std::string::npos;
  return false;
}

// Empty, or the first reason. At drawn sizes, outputs that are set aside are not asked about.
std::string verdict(const Reference& reference, const NamedTensors& outputs, bool drawn, const Names& aside) {
  CheckResult result;
  reference.judge(outputs, result);
  if (result.verdict == CheckVerdict::kPass || !drawn) return result.reason;
  for (const auto& row : result.outputs)
    if (!row.comparison.accepted() && !beyond_class(reference, row) &&
        std::find(aside.begin(), aside.end(), row.name) == aside.end())
      return "output '" + row.name + "': " + row.comparison.reason;
  return result.outputs.size() == reference.outputs().size() ? "" : result.reason;
}

// The oracle as an implementation would return it that computes without error.
NamedTensors exact_answer(const Reference& reference) {
  NamedTensors outputs;
  for (const auto& [name, tensor] : reference.baseline_run())
    outputs.set(name, reference.oracle()[name].to(tensor.options()));
  return outputs;
}

NamedTensors run(const Component& component, Variant variant, const Setting& setting, const NamedTensors& generated) {
  const NamedTensors inputs = placed_inputs(generated, setting.dtype, setting.device);
  const auto runnable = component.make(variant, inputs, setting);
  run_afresh(*runnable);
  return copied_outputs(*runnable);
}

void sweep_one(const Component& component, const Setting& setting, std::uint64_t seed, bool drawn, Tally& tally) {
  const NamedTensors generated = generated_inputs(component.spec, setting, seed);
  const Reference reference(component, setting, generated);
  const Names aside = drawn ? reference.cancelled() : Names{};
  ++tally.judged;
  if (drawn && setting.backward()) tally.gradients += static_cast<std::int64_t>(reference.outputs().size());
  tally.cancelled += static_cast<std::int64_t>(aside.size());
  const auto right = [&](const std::string& whose, const NamedTensors& outputs) {
    const std::string reason = verdict(reference, outputs, drawn, aside);
    if (reason.empty()) return;
    ++tally.failed[whose];
    std::string sizes;
    for (const auto& [name, value] : setting.input_case.sizes) sizes += " " + name + "=" + std::to_string(value);
    tally.reasons.push_back(component.spec.id() + "/" + whose + "/" + to_string(setting.dtype) + "/" +
                            setting.input_case.name + " seed " + std::to_string(seed) + sizes + ": " + reason);
  };
  right("exact", exact_answer(reference));
  right("baseline", reference.baseline_run());
  for (const Variant variant : {Variant::kOptimized, Variant::kLibrary}) {
    if (component.supports(variant, c10::DeviceType::CPU, setting.dtype))
      right(to_string(variant), run(component, variant, setting, generated));
  }
  if (!rounds_operands(setting.dtype) || setting.input_case.degenerate) return;
  const auto wrong = [&](const std::string& what, const NamedTensors& outputs) {
    ++tally.wrong[what];
    tally.rejected[what] += !verdict(reference, outputs, drawn, aside).empty();
  };
  Setting fp32 = setting;
  fp32.dtype = Dtype::kFp32;
  wrong("unrounded", run(component, Variant::kBaseline, fp32, generated));
  NamedTensors once_more = reference.baseline_run();
  for (auto& [name, tensor] : once_more)
    if (tensor.is_floating_point()) tensor = rounded(tensor, setting.dtype);
  wrong("rounded once more", once_more);
  const Truncating truncating;
  wrong("truncated", run(component, Variant::kBaseline, setting, generated));
}

void print(const std::map<std::string, Tally>& tallies) {
  std::printf("%-34s %7s | failures of right answers        | wrong twins rejected\n", "", "judged");
  for (const auto& [name, tally] : tallies) {
    std::printf("%-34s %7lld |", name.c_str(), static_cast<long long>(tally.judged));
    for (const char* whose : {"exact", "baseline", "optimized", "library"}) {
      const auto found = tally.failed.find(whose);
      std::printf(" %s %lld", whose, found == tally.failed.end() ? 0LL : static_cast<long long>(found->second));
    }
    std::printf(" |");
    for (const auto& [what, count] : tally.wrong)
      std::printf(" %s %lld/%lld", what.c_str(), static_cast<long long>(tally.rejected.at(what)),
                  static_cast<long long>(count));
    if (tally.gradients > 0)
      std::printf(" | cancelled gradients %lld/%lld", static_cast<long long>(tally.cancelled),
                  static_cast<long long>(tally.gradients));
    std::printf("\n");
  }
}

void expect_right(const std::map<std::string, Tally>& tallies) {
  print(tallies);
  for (const auto& [name, tally] : tallies) {
    EXPECT_GT(tally.judged, 0);
    if (tally.gradients >= 100)  // setting aside is for freaks: widths of one or two
      EXPECT_LE(10 * tally.cancelled, tally.gradients) << name << ": too many gradients cancel to judge the rest";
    for (const auto& reason : tally.reasons) ADD_FAILURE() << reason;
    for (const auto& [what, count] : tally.wrong)
      EXPECT_GE(2 * tally.rejected.at(what), count) << name << ": twins " << what << " pass too often";
  }
}

bool is_small(const Component& component, const Case& one) {
  return component.has_kernel && !one.timed && one.specimen.empty();
}

class SeedSweep : public testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(1); }
};

TEST_F(SeedSweep, SmallCases) {
  std::map<std::string, Tally> tallies;
  const int wanted = count_from("TWINBENCH_SWEEP_SEEDS", 0), seeds = wanted > 0 ? wanted : 5;
  const int first = count_from("TWINBENCH_SWEEP_FIRST", 1);
  int cell = 0;
  for (const auto& component : components())
    for (const auto& one : component.spec.cases)
      for (const Dtype dtype : component.spec.dtypes) {
        ++cell;
        for (int seed = first; is_small(component, one) && seed < first + seeds; ++seed) {
          if (wanted <= 0 && seed - 1 != cell % seeds) continue;
          const Setting setting = completed(component.spec.signature, {one, dtype});
          sweep_one(component, setting, static_cast<std::uint64_t>(seed), false,
                    tallies[component.spec.id() + "/" + to_string(dtype)]);
        }
      }
  expect_right(tallies);
}

// Every size of the signature drawn anew, log-uniformly, as large as a second allows.
Setting drawn_sizes(const Component& component, Setting setting, std::uint64_t seed) {
  constexpr double kMost = 200, kMostInputs = 200'000;
  for (std::uint32_t attempt = 0;; ++attempt) {
    std::uint32_t number = 0;
    Sizes sizes;
    for (const auto& size : component.spec.signature.sizes) {
      const double share = philox(seed, number++, attempt, 0, 0).w[0] * 0x1p-32;
      const double low = std::max<double>(1, static_cast<double>(size.low));
      const double high = std::min<double>(kMost, static_cast<double>(size.high));
      sizes[size.name] = static_cast<std::int64_t>(std::exp(std::log(low) + share * std::log((high + 1) / low)));
    }
    setting.input_case.sizes = sizes;
    const Setting complete = completed(component.spec.signature, setting);
    double elements = 0;
    for (const auto& input : inputs_of(component.spec.signature, complete))
      elements += static_cast<double>(c10::multiply_integers(extents(input.shape, complete)));
    if (elements <= kMostInputs) return complete;
  }
}

TEST_F(SeedSweep, SizesDrawnAtRandom) {
  std::map<std::string, Tally> tallies;
  const int first = count_from("TWINBENCH_SWEEP_FIRST", 1);
  const int draws = count_from("TWINBENCH_SWEEP_SIZES", 2);
  for (const auto& component : components()) {
    std::vector<Case> cases;
    for (const auto& one : component.spec.cases)
      if (is_small(component, one) && !one.degenerate) cases.push_back(one);
    for (int draw = first; !cases.empty() && draw < first + draws; ++draw)
      for (const Dtype dtype : component.spec.dtypes) {
        const auto seed = static_cast<std::uint64_t>(draw);
        const Case& one = cases[philox(seed, 0, 0, 1, 0).w[0] % cases.size()];
        sweep_one(component, drawn_sizes(component, {one, dtype}, seed), seed, true,
                  tallies[component.spec.id() + "/" + to_string(dtype)]);
      }
  }
  expect_right(tallies);
}

}  // namespace
}  // namespace twinbench
