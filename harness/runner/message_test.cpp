// Framing: pieces of any size, garbage, lies about the length, and text that is not UTF-8.
#include "harness/runner/message.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <limits>

#include "src/common/error.h"

namespace twinbench {
namespace {

std::string bytes_of(const nlohmann::json& message) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  send_message(ends[1], message);
  close(ends[1]);
  std::string bytes(65536, '\0');
  bytes.resize(static_cast<std::size_t>(read(ends[0], bytes.data(), bytes.size())));
  close(ends[0]);
  return bytes;
}

TEST(Message, ArrivesWholeFromPiecesOfOneByte) {
  const std::string bytes = bytes_of({{"kind", "part"}, {"value", 1.5}}) + bytes_of({{"kind", "alive"}});
  MessageReader reader;
  std::vector<nlohmann::json> all;
  for (const char byte : bytes)
    for (auto& message : reader.take(std::string_view(&byte, 1))) all.push_back(message);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["value"], 1.5);
  EXPECT_EQ(all[1]["kind"], "alive");
  EXPECT_FALSE(reader.in_the_middle());
  EXPECT_EQ(reader.broken(), "");
}

TEST(Message, GarbageIsSeenAtItsFirstByte) {
  MessageReader reader;
  EXPECT_TRUE(reader.take("x").empty());
  EXPECT_NE(reader.broken(), "");
  EXPECT_TRUE(reader.take(bytes_of({{"kind", "alive"}})).empty()) << "nothing after garbage is believed";
}

TEST(Message, AMessageBeforeGarbageStillCounts) {
  MessageReader reader;
  EXPECT_EQ(reader.take(bytes_of({{"kind", "alive"}}) + "garbage").size(), 1u);
  EXPECT_NE(reader.broken(), "");
}

TEST(Message, ALengthBeyondTheLimitAndBrokenJsonAreRefused) {
  MessageReader too_long, no_json, no_kind;
  too_long.take("TWBJ\xff\xff\xff\xff");
  EXPECT_NE(too_long.broken().find("4294967295"), std::string::npos);
  no_json.take(std::string("TWBJ\x02\0\0\0\0\0\0\0\0\0\0\0{,", 18));
  EXPECT_NE(no_json.broken(), "");
  no_kind.take(std::string("TWBJ\x02\0\0\0\0\0\0\0\0\0\0\0{}", 18));
  EXPECT_NE(no_kind.broken(), "");
}

// SipHash-2-4's published example: key 00..0f, message 00..0e (its first eight bytes are our place).
TEST(Seal, IsThePublishedFunction) {
  const std::string tail("\x08\x09\x0a\x0b\x0c\x0d\x0e");
  EXPECT_EQ(seal_of({0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull}, 0x0706050403020100ull, tail),
            0xa129ca6149be45e5ull);
}

TEST(Message, WithoutTheKeyNoneIsWritten) {
  const SealKey key = new_seal_key();
  MessageReader reader(key);
  EXPECT_TRUE(reader.take(bytes_of({{"kind", "result"}, {"value", "forged"}})).empty());
  EXPECT_NE(reader.broken().find("seal"), std::string::npos) << reader.broken();
}

TEST(Message, CutShortIsInTheMiddle) {
  const std::string bytes = bytes_of({{"kind", "alive"}});
  MessageReader reader;
  EXPECT_TRUE(reader.take(bytes.substr(0, bytes.size() - 1)).empty());
  EXPECT_TRUE(reader.in_the_middle());
}

TEST(Message, TextThatIsNotUtf8AndNumbersThatAreNotFiniteStillArrive) {
  MessageReader reader;
  const nlohmann::json sent = {
      {"kind", "part"}, {"text", "a\xff"}, {"value", std::numeric_limits<double>::quiet_NaN()}};
  const auto messages = reader.take(bytes_of(sent));
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_TRUE(messages[0]["value"].is_null());
  EXPECT_EQ(valid_utf8("a\xff"), "a\xEF\xBF\xBD");
}

TEST(Message, AClosedPipeIsAnError) {
  signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_THROW(send_message(ends[1], {{"kind", "alive"}}), Error);
  close(ends[1]);
}

}  // namespace
}  // namespace twinbench
