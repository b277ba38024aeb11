// Tests are found by their text: named, without comments, and only in files that hold tests.
#include "harness/command/test_names.h"

#include <gtest/gtest.h>

#include "src/common/error.h"

namespace twinbench {
namespace {

using Facts = std::set<std::string>;

TEST(TestNames, OfBothKindsOfFiles) {
  EXPECT_EQ(tests_in("a_test.cpp", "TEST(Suite, One) {\nTEST_F(\n    Fixture, Two) {}\nTEST_P(Each, Three) {}"),
            (Facts{"gtest Suite.One", "gtest Fixture.Two", "gtest Each.Three"}));
  EXPECT_EQ(tests_in("test_a.py", "def test_one():\n    def helper(): ...\nclass Some:\n    async def test_two(self):"),
            (Facts{"pytest test_a test_one", "pytest test_a test_two"}));
}

TEST(TestNames, WhatIsTakenOutIsGone) {
  EXPECT_EQ(tests_in("a_test.cpp", "// TEST(Suite, One) {"), Facts());
  EXPECT_EQ(tests_in("a_test.cpp", "TEST(Suite, SKIPPED_One) {"), Facts{"gtest Suite.SKIPPED_One"});
  EXPECT_EQ(tests_in("test_a.py", "# def test_one():\ndef no_test_two():"), Facts());
  EXPECT_EQ(tests_in("a.cpp", "TEST(Suite, One) {"), Facts());
}

TEST(TestNames, AnotherFolderIsAnError) { EXPECT_THROW(test_facts("/nonexistent"), Error); }

}  // namespace
}  // namespace twinbench
