// Sizes on the CUDA path: those within the declared limits run, whatever is drawn; beyond a limit the refusal is typed.
#include <gtest/gtest.h>

#include <algorithm>

#include "harness/compare/inputs.h"
#include "harness/parity/held_out.h"
#include "harness/runner/components_in_turn.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

// Why a variant refuses, at set-up or at a launch; empty where it runs.
std::string refusal(const Component& component, const Case& one, Variant variant = Variant::kOptimized,
                    Device device = Device::simt()) {
  const Setting setting = completed(component.spec.signature, {one, Dtype::kFp32, device});
  try {
    component.make(variant, device, generated_inputs(component.spec, setting, 1), setting)->run();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool within(const Component& component, const Case& one) {
  try {
    check_card_limits(component.spec, completed(component.spec.signature, {one, Dtype::kFp32, Device::simt()}));
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(CardLimits, ListedCasesAreWithinThem) {
  for (const auto& component : components())
    for (const auto& one : component.spec.cases)
      EXPECT_TRUE(within(component, one)) << component.spec.id() << " " << one.name;
}

// As revisions draw them: a kernel that cannot take what lies within its limits fails here and not at some later
// revision. What the baseline refuses too is no case.
TEST(CardLimits, WhateverIsDrawnWithinThemRuns) {
  int runs = 0;
  for (const Component* const component : components_in_turn(10, [](const Component& one) { return one.has_kernel; }))
    for (int number = 0; number < 5; ++number) {
      const HeldOutDraw draw = held_out_draw(*component, "any revision", number, false);
      if (draw.input_case.sizes.empty() || !within(*component, draw.input_case)) continue;
      const std::string why = refusal(*component, draw.input_case);
      if (!why.empty() && why == refusal(*component, draw.input_case, Variant::kBaseline, Device())) continue;
      EXPECT_EQ(why, "") << component->spec.id() << " " << draw.text;
      ++runs;
    }
  EXPECT_GT(runs, 10);
}

// One size after the other, as large as the limits allow beside the others of the first case of that pass.
TEST(CardLimits, TheLargestAllowedSizeRunsAndTheNextIsRefused) {
  int limited = 0;
  for (const Component* const chosen :
       components_in_turn(1, [](const Component& one) { return !one.spec.card_limits.empty(); })) {
    const Component& component = *chosen;
    for (const auto& limit : component.spec.card_limits)
      for (const auto& symbol : limit.of.symbols()) {
        const auto base = std::find_if(component.spec.cases.begin(), component.spec.cases.end(),
                                       [&](const Case& one) { return !limit.pass || one.pass == *limit.pass; });
        ASSERT_NE(base, component.spec.cases.end()) << component.spec.id();
        Case one = *base;
        for (auto& [name, length] : one.sizes) length = std::max<std::int64_t>(length, name == symbol ? 1 : 8);
        std::int64_t& length = one.sizes.at(symbol);
        const auto& sizes = component.spec.signature.sizes;
        length =
            std::find_if(sizes.begin(), sizes.end(), [&](const SizeSpec& size) { return size.name == symbol; })->high;
        std::int64_t refused = length;
        ASSERT_FALSE(within(component, one)) << component.spec.id() << ": no " << symbol << " reaches the limit";
        for (std::int64_t allowed = 1; refused - allowed > 1;) {
          length = (allowed + refused) / 2;
          (within(component, one) ? allowed : refused) = length;
        }
        length = refused - 1;
        EXPECT_EQ(refusal(component, one), "") << component.spec.id() << ", " << symbol << " " << length;
        length = refused;
        EXPECT_NE(refusal(component, one).find("out_of_range: " + limit.of.text()), std::string::npos)
            << component.spec.id() << ", " << symbol << " " << length << ": " << refusal(component, one);
        ++limited;
      }
  }
  EXPECT_GE(limited, 1);
}

}  // namespace
}  // namespace twinbench
