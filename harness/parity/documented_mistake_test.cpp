// Every specimen is rejected as documented, at one seed in each revision, at fifty with TWINBENCH_EVERY, at so many as
// TWINBENCH_SPECIMEN_SEEDS says; and another wrong answer in its place is not taken for it.
#include "harness/parity/documented_mistake.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "harness/parity/subject.h"

namespace twinbench {
namespace {

struct Specimen {
  const Component* component;
  Setting setting;
};

std::vector<Specimen> specimens() {
  std::vector<Specimen> all;
  for (const auto& cell : all_cells())
    if (!cell.input_case->specimen.empty() && cell.device.is_cpu() && cell.variant == Variant::kBaseline)
      all.push_back({cell.component, cell.setting()});
  return all;
}

CheckResult shown(const Component& component, const Setting& setting, std::uint64_t seed, OracleCache& oracles) {
  CheckResult result;
  check_specimen(component, setting, seed, oracles, result);
  return result;
}

// The right answer with another fault than the documented one, instead of the specimen.
enum class Other { kZeros, kNegated, kHalfAsMuchAgain, kReversed, kRight };
Other g_other = Other::kZeros;
const Component* g_component = nullptr;

class OtherMistake final : public Runnable {
 public:
  OtherMistake(const NamedTensors& inputs, Setting setting) {
    setting.input_case.options[setting.input_case.specimen] = 0;
    right_ = g_component->baseline(inputs, setting);
  }
  void run() override { right_->run(); }
  void reset() override { right_->reset(); }
  NamedTensors outputs() override {
    NamedTensors outputs = right_->outputs();
    for (auto& [name, tensor] : outputs) {
      if (!tensor.is_floating_point() && !tensor.is_complex()) continue;
      if (g_other == Other::kZeros) tensor = at::zeros_like(tensor);
      if (g_other == Other::kNegated) tensor = -tensor;
      if (g_other == Other::kHalfAsMuchAgain) tensor = 1.5 * tensor;
      if (g_other == Other::kReversed) tensor = tensor.flatten().flip(0).view_as(tensor).contiguous();
    }
    return outputs;
  }

 private:
  std::unique_ptr<Runnable> right_;
};

std::unique_ptr<Runnable> planted(const NamedTensors& inputs, const Setting& setting) {
  if (!setting.input_case.specimen.empty() && setting.on(setting.input_case.specimen))
    return std::make_unique<OtherMistake>(inputs, setting);
  return g_component->baseline(inputs, setting);
}

TEST(DocumentedMistake, EachIsRejectedForWhatIsDocumentedOfIt) {
  at::set_num_threads(1);
  const char* const given = std::getenv("TWINBENCH_SPECIMEN_SEEDS");
  const int seeds = given ? std::atoi(given) : std::getenv("TWINBENCH_EVERY") ? 50 : 1;
  EXPECT_GE(specimens().size(), 11u);
  for (const auto& [component, setting] : specimens())
    for (int seed = 1; seed <= seeds; ++seed) {
      OracleCache oracles;
      const CheckResult result = shown(*component, setting, static_cast<std::uint64_t>(seed), oracles);
      EXPECT_EQ(result.verdict, CheckVerdict::kPass)
          << component->spec.id() << "/" << setting.input_case.name << " seed " << seed << ": " << result.reason;
      if (given)
        std::printf("%s/%s/%s seed %d: %s\n", component->spec.id().c_str(), to_string(setting.dtype).c_str(),
                    setting.input_case.name.c_str(), seed, result.reason.c_str());
    }
}

TEST(DocumentedMistake, AnotherWrongAnswerIsNotTakenForIt) {
  at::set_num_threads(1);
  for (const auto& [component, setting] : specimens()) {
    g_component = component;
    Component forged = *component;
    forged.baseline = planted;
    OracleCache oracles;  // right answers are the same beside every fault
    for (const Other other :
         {Other::kZeros, Other::kNegated, Other::kHalfAsMuchAgain, Other::kReversed, Other::kRight}) {
      g_other = other;
      const CheckResult result = shown(forged, setting, 1, oracles);
      EXPECT_EQ(result.verdict, CheckVerdict::kFail) << component->spec.id() << "/" << setting.input_case.name
                                                     << ", fault " << static_cast<int>(other) << ": " << result.reason;
    }
  }
}

TEST(DocumentedMistake, ErrorScaleAndWhatIsNotFiniteAreMeasured) {
  const at::Tensor right = at::tensor({3.0, 4.0, 0.0, 0.0}, at::kDouble);
  const Wrongness sign = wrongness(-right, right);
  EXPECT_DOUBLE_EQ(sign.error, 2);
  EXPECT_DOUBLE_EQ(sign.scale, -1);
  EXPECT_DOUBLE_EQ(sign.beside, 0);
  const Wrongness beside = wrongness(right + at::tensor({0.0, 0.0, 5.0, 0.0}, at::kDouble), right);
  EXPECT_DOUBLE_EQ(beside.error, 1);
  EXPECT_DOUBLE_EQ(beside.scale, 1);
  EXPECT_DOUBLE_EQ(beside.beside, 1);
  EXPECT_DOUBLE_EQ(wrongness(1.5 * right + at::tensor({0.0, 0.0, 0.0, 2.5}, at::kDouble), right).beside, 0.5);
  const Wrongness lost = wrongness(at::tensor({3.0f, 4.0f, NAN, 0.0f}), right);
  EXPECT_DOUBLE_EQ(lost.error, 0);
  EXPECT_DOUBLE_EQ(lost.not_finite, 0.25);
  EXPECT_DOUBLE_EQ(wrongness(at::tensor({3.0, 4.0}, at::kDouble), right).error, 1e30) << "of a text of another length";
}

}  // namespace
}  // namespace twinbench
