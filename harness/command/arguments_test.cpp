// Values that would wrap around, overflow or mean something else are refused, with field, value and remedy.
#include "harness/command/arguments.h"

#include <gtest/gtest.h>

#include <limits>

#include "harness/command/command.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

TEST(Arguments, WholeNumbersInTheirRangePass) {
  for (const char* text : {"0", "1234", "18446744073709551615"}) EXPECT_EQ(not_whole(text, 0, kAny), "") << text;
  EXPECT_EQ(not_whole("16777216", 1, kMostMemory_MiB), "");
}

TEST(Arguments, WhatWouldWrapAroundIsRefused) {
  for (const char* text :
       {"-1", "18446744073709551616", "99999999999999999999", "1.5", "1e3", "0x10", "+1", " 1", "1 ", "", "one"}) {
    const std::string wrong = not_whole(text, 0, kAny);
    EXPECT_NE(wrong.find("'" + std::string(text) + "' is no whole number from 0"), std::string::npos) << text;
  }
  EXPECT_NE(not_whole("16777217", 1, kMostMemory_MiB), "");
  EXPECT_NE(not_whole("0", 1, kMostMemory_MiB), "");
}

Error refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "it was accepted";
  return Error(ErrorKind::kInternal, "", "", "");
}

TEST(Arguments, AFileOfPinsMustBeThere) {
  const Error error = refusal([] { require_pins("no/such/pins.json", false); });
  EXPECT_EQ(error.kind(), ErrorKind::kInputOutput);
  EXPECT_EQ(error.field(), "--pins");
  EXPECT_EQ(error.value(), "no/such/pins.json");
  EXPECT_NE(std::string(error.what()).find("repository's root"), std::string::npos);
  require_pins("no/such/pins.json", true);  // it will be written
}

TEST(Arguments, ASizeIsGivenOnce) {
  Case input;
  input.sizes = {{"rows", 4}, {"width", 5}};
  override_sizes(input, {"rows=7", "width=8"});
  EXPECT_EQ(input.sizes.at("rows"), 7);
  const Error error = refusal([&] { override_sizes(input, {"rows=7", "rows=8"}); });
  EXPECT_EQ(error.kind(), ErrorKind::kBadArgument);
  EXPECT_EQ(error.field(), "--size");
  EXPECT_EQ(error.value(), "rows=8");
}

TEST(Arguments, ASizeIsPlainDigits) {
  Case input;
  input.sizes = {{"rows", 4}};
  for (const std::string text : {"rows= 7", "rows=+7", "rows=-1", "rows=7 ", "rows=0x7", "rows=1e3", "rows=", "rows",
                                 "rows=2147483649", "rows=99999999999999999999", "rows=\t7"}) {
    const Error error = refusal([&] { override_sizes(input, {text}); });
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange) << text;
    EXPECT_EQ(error.value(), text);
  }
  EXPECT_EQ(input.sizes.at("rows"), 4);
  override_sizes(input, {"rows=2147483648"});
}

}  // namespace
}  // namespace twinbench
