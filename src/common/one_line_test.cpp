// Nothing that a stranger wrote is obeyed by a terminal or a log.
#include "src/common/one_line.h"

#include <gtest/gtest.h>

#include "src/common/error.h"

namespace twinbench {
namespace {

TEST(OneLine, OrdinaryTextStaysAsItIs) {
  for (const std::string text : {"", "a b", "x::y [z]", "1 % \xC3\xA4 \xE2\x86\x92 \xF0\x9F\x98\x80", "# [a]"})
    EXPECT_EQ(one_line(text), text);
}

TEST(OneLine, ControlsOverridesAndBrokenBytesAreShownAsUnknown) {
  EXPECT_EQ(one_line("\x1b[31mred\x7f"), "\xEF\xBF\xBD[31mred\xEF\xBF\xBD");
  EXPECT_EQ(one_line("a\r\n\tb\xC2\x85\xE2\x80\xA8"
                     "c"),
            "a   b  c");
  EXPECT_EQ(one_line("\xC2\x9b"
                     "31m"),
            "\xEF\xBF\xBD"
            "31m");
  EXPECT_EQ(one_line("\xE2\x80\xAE"
                     "txt"),
            "\xEF\xBF\xBDtxt");
  // Bytes that begin nothing, half a character, an overlong one, half a pair, beyond the last one.
  for (const std::string broken : {"\xFF", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80"})
    EXPECT_EQ(one_line(broken + "x").find_first_not_of("\xEF\xBF\xBD"), one_line(broken + "x").size() - 1);
  EXPECT_EQ(one_line(std::string("\0", 1)), "\xEF\xBF\xBD");
}

TEST(OneLine, CommandsOfALogAreBroken) {
  EXPECT_NE(one_line("  ::error::x").substr(2, 2), "::");
  EXPECT_NE(one_line("\n::error::x").substr(1, 2), "::");
  EXPECT_EQ(one_line("a ##[error]x ##[b").find("##["), std::string::npos);
}

TEST(OneLine, LongTextIsCutInTheMiddleAtWholeCharacters) {
  const std::string line = one_line(std::string(1000, 'a') + std::string(1000, 'b'), 100);
  EXPECT_LT(line.size(), 200u);
  EXPECT_NE(line.find("(2000 bytes)"), std::string::npos);
  EXPECT_TRUE(line.starts_with("aaa") && line.ends_with("bbb"));
  std::string wide;
  for (int i = 0; i < 500; ++i) wide += "\xE2\x86\x92";
  for (std::size_t most = 90; most < 100; ++most)
    EXPECT_EQ(one_line(wide, most).find("\xEF\xBF\xBD"), std::string::npos);
}

TEST(OneLine, ErrorsAreOneHarmlessLineWhateverTheyName) {
  const Error error(ErrorKind::kBadFile, "tensor \x1b[31m", std::string(300'000, 'v'), "see\n::error::planted");
  const std::string line = error.what();
  EXPECT_EQ(line.find_first_of("\x1b\n"), std::string::npos);
  EXPECT_LT(line.size(), 2000u);
  EXPECT_EQ(error.value().size(), 300'000u);
}

}  // namespace
}  // namespace twinbench
