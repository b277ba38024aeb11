// Filters: searched for, refused by name, and never without end.
#include "src/common/filter_pattern.h"

#include <gtest/gtest.h>

#include <chrono>

#include "src/common/error.h"

namespace twinbench {
namespace {

TEST(FilterPattern, IsSearchedFor) {
  EXPECT_TRUE(FilterPattern("").found_in("a/b"));
  EXPECT_TRUE(FilterPattern("^sem\\.(scan|cayley)/.*/(tiny|odd)$").found_in("sem.scan/optimized/cpu/fp32/odd"));
  EXPECT_FALSE(FilterPattern("^b").found_in("a/b"));
}

TEST(FilterPattern, WhatIsNoExpressionIsNamed) {
  for (const std::string& text :
       {std::string("("), std::string("a{2,1}"), std::string("a**"), std::string("(?=a)"), std::string("\xFF"),
        std::string("\\"), std::string(60'000, '('), std::string("((a{100}){100}){100}")}) {
    try {
      FilterPattern pattern(text);
      ADD_FAILURE() << text.substr(0, 40) << " was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadArgument);
      EXPECT_LT(std::string(error.what()).size(), 4000u);
    }
  }
}

TEST(FilterPattern, NoExpressionTriesForEver) {
  const auto began = std::chrono::steady_clock::now();
  const std::string name = std::string(5000, 'a') + "!";
  for (const char* text : {"(a+)+$", "(a|aa)+$", "(.*)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){20}a{20}$"})
    EXPECT_FALSE(FilterPattern(text).found_in(name));
  // Long and deep, but regular expressions.
  EXPECT_FALSE(FilterPattern(std::string(120'000, 'a')).found_in(name));
  EXPECT_TRUE(FilterPattern(std::string(60'000, '(') + std::string(60'000, ')')).found_in(name));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
}

}  // namespace
}  // namespace twinbench
