// Size expressions: values, binding symbols, and what is refused.
#include "src/expression.h"

#include <gtest/gtest.h>

#include <map>

#include "src/common/error.h"

namespace twinbench {
namespace {

std::int64_t value_of(const std::string& text) {
  const std::map<std::string, std::int64_t> sizes = {{"a", 7}, {"b", 3}, {"layer", 0}};
  return Expression(text).evaluate([&](const std::string& name) { return sizes.at(name); });
}

TEST(Expression, Evaluates) {
  EXPECT_EQ(value_of("3 * a + b"), 24);
  EXPECT_EQ(value_of("a - b - 1"), 3);
  EXPECT_EQ(value_of("a / b * 2"), 4);
  EXPECT_EQ(value_of("ceil(a, b)"), 3);
  EXPECT_EQ(value_of("max(a / 2, 2 * b)"), 6);
  EXPECT_EQ(value_of("min(a, (b + 1) * 2)"), 7);
  EXPECT_EQ(value_of("layer == 0 ? a + 1 : b"), 8);
  EXPECT_EQ(value_of("a < b ? 1 : layer == 1 ? 2 : 3"), 3);
}

TEST(Expression, SymbolicValuesAreTheSame) {
  const auto size_of = [](const std::string&) { return c10::SymInt(5); };
  EXPECT_EQ(Expression("3 * a + ceil(a, 2)").evaluate_symbolic(size_of).expect_int(), 18);
}

TEST(Expression, OnlyALoneSymbolBinds) {
  EXPECT_EQ(Expression(" flows ").symbol(), "flows");
  EXPECT_EQ(Expression("flows + 1").symbol(), "");
  EXPECT_EQ(Expression("max(a, b) + a").symbols(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(value_of("layer"), 0);
  EXPECT_EQ(Expression("layer == 1 ? a : b").with("layer", 1).symbols(), (std::vector<std::string>{"a", "b"}));
}

TEST(Expression, RefusesWhatMakesNoSense) {
  for (const char* text : {"", "3 *", "a b", "(a", "max(a)", "a ? b", "1.5", "a % 2", "99999999999999999999"})
    EXPECT_THROW(Expression{text}, Error) << text;
  EXPECT_THROW((void)value_of("a / layer"), Error);
  try {
    Expression("a + * b");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.value(), "a + * b");
    EXPECT_NE(error.remedy().find("character 5"), std::string::npos) << error.remedy();
  }
}

}  // namespace
}  // namespace twinbench
