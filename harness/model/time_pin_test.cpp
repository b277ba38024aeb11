// Pins of modelled times: a drop names card, limiter, before and after; rounding is no change.
#include "harness/model/time_pin.h"

#include <gtest/gtest.h>

#include "src/common/error.h"

namespace twinbench::model {
namespace {

const TimePin kPinned{40e-6, 0.75, "Copy: memory bandwidth"};

TEST(TimePin, ADropNamesCardLimiterBeforeAndAfter) {
  const std::string text = change_of("H200", kPinned, {80e-6, 0.375, "Copy: L2 bandwidth"});
  for (const char* part :
       {"H200", "fell 0.750 -> 0.375", "40.00 -> 80.00 us", "(Copy: memory bandwidth)", "(Copy: L2 bandwidth)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  EXPECT_NE(change_of("H200", kPinned, {30e-6, 1.0, kPinned.limiter}).find("rose 0.750 -> 1.000"), std::string::npos);
}

TEST(TimePin, RoundingIsNoChangeAndTheNextStepIsOne) {
  EXPECT_EQ(change_of("H200", kPinned, {40.03e-6, 0.7492, "another of the same length"}), "");
  EXPECT_NE(change_of("H200", kPinned, {40.2e-6, 0.7485, kPinned.limiter}), "");
  // A share near nothing says nothing: the time does.
  EXPECT_NE(change_of("H200", {5e-6, 0.000, ""}, {6e-6, 0.000, ""}), "");
}

TEST(TimePin, WhatIsWrittenIsRead) {
  const TimePin read = time_pin_of(to_json(kPinned), "cell");
  EXPECT_EQ(change_of("H200", kPinned, read), "");
  EXPECT_EQ(read.limiter, kPinned.limiter);
  for (const char* bad :
       {R"({"microseconds": "4.0"})", R"({"microseconds": 4.0, "floor_share": "0.1"})",
        R"({"microseconds": "-4", "floor_share": "0.1"})", R"({"microseconds": " 4", "floor_share": "0.1"})",
        R"({"microseconds": "0x4", "floor_share": "0.1"})", R"("fast")"})
    EXPECT_THROW(time_pin_of(nlohmann::json::parse(bad), "cell"), Error) << bad;
}

}  // namespace
}  // namespace twinbench::model
