// Texts become the ids that the specification says, whatever bytes they hold; words come back.
#include "src/energy_flow/common/tokenizer.h"

#include <gtest/gtest.h>

#include "src/formats/test_support.h"

namespace twinbench::energy_flow {
namespace {

using Ids = std::vector<std::int32_t>;

std::vector<std::string> words_in(std::string_view text) {
  std::vector<std::string> words;
  each_word(text, [&](std::string_view word) {
    words.emplace_back(word);
    return true;
  });
  return words;
}

Vocabulary walking() {
  WordCounts counts;
  counts.add("a man walks");
  counts.add("a man runs");
  return counts.vocabulary();
}

TEST(Tokenizer, TheWorkedExample) {
  const Vocabulary vocabulary = walking();
  EXPECT_EQ(vocabulary.words(), (std::vector<std::string>{"a", "man", "runs", "walks"}));
  EXPECT_EQ(vocabulary.id_of("walks"), 8);
  const Tokens flies = tokens_of("A man flies!", vocabulary);
  EXPECT_EQ(flies.ids, (Ids{3, 5, 6, 2, 2, 1}));
  EXPECT_EQ(flies.unknown, 2);
  EXPECT_EQ(tokens_of("  ", vocabulary).ids, (Ids{3, 4, 1}));
  EXPECT_EQ(tokens_of("", vocabulary).ids, (Ids{3, 4, 1}));
}

TEST(Tokenizer, EveryByteIsWhatTheSpecificationSays) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool space = (byte >= 9 && byte <= 13) || byte == 32;
    const bool mark = (byte >= 33 && byte <= 47) || (byte >= 58 && byte <= 64) || (byte >= 91 && byte <= 96) ||
                      (byte >= 123 && byte <= 126);
    const std::string one(1, static_cast<char>(byte)),
        low(1, static_cast<char>(byte >= 65 && byte <= 90 ? byte + 32 : byte));
    const std::vector<std::string> expected = space  ? std::vector<std::string>{"x", "y"}
                                              : mark ? std::vector<std::string>{"x", one, "y"}
                                                     : std::vector<std::string>{"x" + low + "y"};
    EXPECT_EQ(words_in("x" + one + "y"), expected) << byte;
  }
}

TEST(Tokenizer, BytesThatAreNoLettersArePartsOfWords) {
  EXPECT_EQ(words_in(std::string("a\0b c", 5)), (std::vector<std::string>{std::string("a\0b", 3), "c"}));
  EXPECT_EQ(words_in("\xC3\x84PFEL \xFF\xFE"), (std::vector<std::string>{"\xC3\x84pfel", "\xFF\xFE"}));
  EXPECT_EQ(words_in("don't stop..."), (std::vector<std::string>{"don", "'", "t", "stop", ".", ".", "."}));
}

TEST(Tokenizer, LongTextsAreCutAndEnd) {
  const Vocabulary vocabulary = walking();
  std::string text;
  for (int i = 0; i < 125; ++i) text += "a ";
  EXPECT_EQ(tokens_of(text, vocabulary).ids.size(), 127u);
  for (const char* more : {"man", "man runs", "man runs, unknown and unknown"}) {
    const Tokens tokens = tokens_of(text + more, vocabulary);
    ASSERT_EQ(tokens.ids.size(), 128u);
    EXPECT_EQ(tokens.ids[126], vocabulary.id_of("man"));
    EXPECT_EQ(tokens.ids[127], kEndToken);
    EXPECT_EQ(tokens.unknown, 0);  // of what is left
  }
  EXPECT_EQ(tokens_of("a man runs", vocabulary, 3).ids, (Ids{3, 5, 1}));
  EXPECT_EQ(error_of([&] { tokens_of("a", vocabulary, 2); }), "out_of_range: max_length");
}

TEST(Tokenizer, WordsComeBackWithoutSpecialIds) {
  const Vocabulary vocabulary = walking();
  const Ids ids = {0, 3, 5, 6, 2, 7, 1, 0};
  EXPECT_EQ(text_of(ids.data(), 8, vocabulary), "a man runs");
  EXPECT_EQ(text_of(ids.data(), 0, vocabulary), "");
  for (const std::int32_t id : {-1, 9})
    EXPECT_EQ(error_of([&] { text_of(&id, 1, vocabulary); }), "out_of_range: token id");
}

TEST(Vocabulary, IdsFollowFrequencyThenBytesAndEndWhereToldTo) {
  WordCounts counts;
  counts.add("b a \xC3\xA9 c! c, a b b");
  EXPECT_EQ(counts.vocabulary().words(), (std::vector<std::string>{"b", "a", "c", "!", ",", "\xC3\xA9"}));
  EXPECT_EQ(counts.vocabulary(7).words(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(counts.vocabulary(7).size(), 7);
  EXPECT_EQ(counts.vocabulary(5).id_of("b"), kUnknownToken);
  EXPECT_EQ(error_of([&] { counts.vocabulary(4); }), "out_of_range: vocab_size");
}

TEST(Vocabulary, WordsThatNoTextGivesAndRepeatsAreRefused) {
  for (const char* word : {"", "a b", "A", "a!", "!!", "a\n"})
    EXPECT_EQ(error_of([&] { Vocabulary({word}); }), "corrupt: vocabulary") << word;
  EXPECT_EQ(error_of([&] { Vocabulary({"a", "a"}); }), "corrupt: vocabulary");
}

TEST(Vocabulary, TheFileGivesItBackAndDamageIsNamed) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("words");
  const Vocabulary vocabulary({"man", "!", std::string("a\0b", 3), "\xFF"});
  write_vocabulary(path, vocabulary);
  EXPECT_EQ(read_vocabulary(path).words(), vocabulary.words());
  const std::string bytes = read_bytes(path);
  const auto changed = [&](const std::string& other) {
    std::ofstream(path, std::ios::binary) << other;  // not safe against a crash, and so hundreds of times quicker
    const std::string error = error_of([&] { read_vocabulary(path); });
    EXPECT_TRUE(error.ends_with(": " + path) || error == "corrupt: vocabulary") << error;
    return error.substr(0, error.find(':'));
  };
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(changed(bytes.substr(0, length)), length < 23 || length == bytes.size() ? "bad_file" : "truncated");
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string other = bytes;
      other[at] = static_cast<char>(other[at] ^ (1 << bit));
      EXPECT_NE(changed(other), "no error") << at << ' ' << bit;
    }
  EXPECT_EQ(changed("twinbench vocabulary 2" + bytes.substr(22)), "bad_file");
  EXPECT_EQ(changed(bytes + "more\n"), "corrupt");
  write_vocabulary(path, Vocabulary());
  EXPECT_EQ(read_vocabulary(path).size(), kFirstWord);
}

}  // namespace
}  // namespace twinbench::energy_flow
