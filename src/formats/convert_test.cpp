// Recognition by contents, conversion between formats, plain text and the default corpus, and the description.
#include "src/formats/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/formats/efds.h"
#include "src/formats/efds_prepare.h"
#include "src/formats/hashed_embedding.h"
#include "src/formats/row_check.h"
#include "src/formats/test_support.h"

namespace twinbench {
namespace {

void expect_same(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(a.texts.blob(), b.texts.blob());
  EXPECT_EQ(a.texts.offsets(), b.texts.offsets());
}

TEST(Convert, EveryFormatHoldsTheSameDataset) {
  const TemporaryDirectory directory;
  const Dataset dataset = sample_dataset(9, 6);
  write_any(directory.file("a.efds"), dataset);
  convert_dataset(directory.file("a.efds"), directory.file("a.safetensors"));
  convert_dataset(directory.file("a.safetensors"), directory.file("a.jsonl"));
  std::filesystem::rename(directory.file("a.jsonl"), directory.file("misnamed.pt"));  // the name does not matter
  convert_dataset(directory.file("misnamed.pt"), directory.file("b.efds"));
  expect_same(read_any(directory.file("a.safetensors")), dataset);
  expect_same(read_any(directory.file("b.efds")), dataset);
  EXPECT_EQ(read_bytes(directory.file("a.efds")), read_bytes(directory.file("b.efds")));
}

TEST(Convert, RefusalsLeaveNothingBehind) {
  const TemporaryDirectory directory;
  Dataset dataset = sample_dataset(9, 6);
  dataset.targets[6 * 4] = std::numeric_limits<float>::infinity();
  write_any(directory.file("a.efds"), dataset);
  const std::string input = directory.file("a.efds");
  const auto error = [&](const std::string& output, const ConvertOptions& options = {}) {
    return error_of([&] { convert_dataset(input, directory.file(output), options); });
  };
  EXPECT_EQ(error("b.efds"), "non_finite: target_embeddings row 4");
  EXPECT_EQ(error("b.pt"), "bad_argument: output");
  ConvertOptions wide, drop;
  wide.expected_width = 768;
  drop.drop_invalid = true;
  EXPECT_EQ(error("b.efds", wide).substr(0, 12), "dim_mismatch");
  EXPECT_EQ(files_in(directory.path()), 1u);
  EXPECT_EQ(error("b.efds", drop), "no error");
  EXPECT_EQ(read_any(directory.file("b.efds")).rows, 8);
  for (const std::string& bytes : {std::string(), std::string("\0\1\2", 3),
                                   std::string("\x7F"
                                               "ELF\0\0",
                                               6)}) {
    write_bytes(directory.file("unknown"), bytes);
    EXPECT_EQ(error_of([&] { read_any(directory.file("unknown")); }).substr(0, 8), "bad_file");
  }
}

TEST(Convert, AnEmbeddingWithoutDirectionStaysAndIsTold) {
  const TemporaryDirectory directory;
  Dataset dataset = sample_dataset(5, 6);
  std::fill_n(dataset.inputs.data() + 2 * 6, 6, 0.0f);
  write_any(directory.file("a.jsonl"), dataset);
  ConvertOptions normalise;
  normalise.normalise = true;
  const auto remarks = [&](const std::string& input) {
    std::string all;
    for (const auto& one : convert_dataset(directory.file(input), directory.file("b.efds"), normalise).remarks)
      all += one + "\n";
    return all;
  };
  EXPECT_NE(remarks("a.jsonl").find("has no direction: 1;"), std::string::npos);
  EXPECT_EQ(invalid_rows(read_any(directory.file("b.efds"))), std::vector<std::int64_t>{2});
  std::fill_n(dataset.inputs.data() + 2 * 6, 6, 3.0f);
  write_any(directory.file("c.jsonl"), dataset);
  EXPECT_EQ(remarks("c.jsonl").find("direction"), std::string::npos);
}

TEST(Convert, SafetensorsTextsAreChecked) {
  const TemporaryDirectory directory;
  Dataset dataset = sample_dataset(2, 3);
  dataset.texts = TextTable("abcd", {0, 1, 9, 9, 9});
  write_dataset_safetensors(directory.file("a"), dataset);
  EXPECT_EQ(error_of([&] { read_any(directory.file("a")); }), "corrupt: text_offsets");
}

TEST(PlainText, SentencesPairsAndRepeats) {
  TextOptions options;
  options.smallest_words = 2;
  const auto paragraphs = split_paragraphs(
      "Mr. Smith went home.  He slept \"very well.\"  Then\nhe woke!\n%\nS\bSo\b it is.\n\t\t-- Mark Twain\nNo.\n",
      options);
  ASSERT_EQ(paragraphs.size(), 2u);
  EXPECT_EQ(paragraphs[0],
            (std::vector<std::string>{"Mr. Smith went home.", "He slept \"very well.\"", "Then he woke!"}));
  EXPECT_EQ(paragraphs[1], (std::vector<std::string>{"S it is."}));

  const TemporaryDirectory directory;
  write_bytes(directory.file("a"), "One two three. Four five six. Seven eight.\n\nFour five six. Nine ten.\n");
  options.width = 64;
  const Dataset dataset = read_plain_text({directory.file("a")}, options);
  ASSERT_EQ(dataset.rows, 2);
  EXPECT_EQ(dataset.input_text(1), "Four five six.");
  EXPECT_EQ(dataset.target_text(1), "Seven eight.");
  write_bytes(directory.file("b"), "Alone in here.");
  EXPECT_EQ(error_of([&] { read_plain_text({directory.file("b")}, options); }), "bad_argument: text");
  write_bytes(directory.file("b"), std::string("One two.\0 Three four.", 21));
  EXPECT_EQ(error_of([&] { read_plain_text({directory.file("b")}, options); }).substr(0, 8), "bad_file");
  options.smallest_words = 0;
  EXPECT_EQ(error_of([&] { read_plain_text({directory.file("a")}, options); }), "out_of_range: words");
}

TEST(HashedEmbedding, IsPinnedNormalisedAndSensibleAboutLikeness) {
  const auto embed = [](std::string_view text, std::int64_t width = kHashedWidth) {
    std::vector<float> row(static_cast<std::size_t>(width));
    hashed_embedding(text, width, row.data());
    return row;
  };
  const auto likeness = [&](std::string_view a, std::string_view b) {
    double sum = 0;
    const auto x = embed(a), y = embed(b);
    for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(x[i]) * y[i];
    return sum;
  };
  for (const char* text : {"", "a", "The quick brown fox.", "\xFF\xFE"}) {
    EXPECT_NEAR(std::sqrt(row_square_sum(embed(text).data(), kHashedWidth)), 1.0, 1e-6) << text;
    for (const std::int64_t width : {1, 2, 5}) {
      EXPECT_NEAR(std::sqrt(row_square_sum(embed(text, width).data(), width)), 1.0, 1e-6) << text << width;
    }
  }
  EXPECT_NEAR(likeness("The quick brown fox jumps.", "the QUICK brown fox jumps."), 1.0, 1e-6);
  EXPECT_GT(likeness("The quick brown fox jumps.", "A quick brown fox jumped."), 0.4);
  EXPECT_LT(std::abs(likeness("The quick brown fox jumps.", "Liberty and copyright notices")), 0.3);
  // Another machine or compiler must give the same rows: the checksum of one is pinned.
  const auto row = embed("Energy flows downhill.");
  EXPECT_EQ(::crc32_z(0, reinterpret_cast<const unsigned char*>(row.data()), row.size() * sizeof(float)), 734950634u);
}

TEST(Make, PlainTextBecomesAPreparedFile) {
  const TemporaryDirectory directory;
  write_bytes(directory.file("a.txt"), "One two three four. Five six seven eight. Nine ten eleven twelve.");
  const Dataset made = make_dataset({directory.file("a.txt")}, directory.file("a.efds"));
  EXPECT_EQ(made.rows, 2);
  EXPECT_EQ(made.width, 768);
  bool ran = true;
  EXPECT_TRUE(load_validity(EfdsFile(directory.file("a.efds")), 1, &ran).dropped.empty());
  EXPECT_FALSE(ran);
  EXPECT_EQ(error_of([&] { make_dataset({directory.file("a.txt")}, directory.file("a.bin")); }),
            "bad_argument: output");
}

TEST(Make, AByteOrderMarkIsNoPartOfAText) {
  const TemporaryDirectory directory;
  for (const std::string& contents : {std::string("{\"input\": \"A first text.\", \"target\": \"A second text.\"}\n"),
                                      std::string("Here is a first sentence. Here is a second sentence.\n")}) {
    write_bytes(directory.file("plain"), contents);
    write_bytes(directory.file("marked"), "\xEF\xBB\xBF" + contents);
    const Dataset plain = read_any(directory.file("plain")), marked = read_any(directory.file("marked"));
    EXPECT_EQ(marked.rows, 1);
    EXPECT_EQ(marked.format, contents[0] == '{' ? "jsonl" : "plain text");
    expect_same(marked, plain);
  }
}

// Nearly all bytes read as plain text, and a spoilt dataset beside a text would vanish in it.
TEST(Make, WhatIsNoTextByNameOrContentsIsNotTakenForOne) {
  const TemporaryDirectory directory;
  const std::string text = "One two three four. Five six seven eight. Nine ten eleven twelve.";
  write_bytes(directory.file("a.txt"), text);
  write_bytes(directory.file("README"), text);
  const auto make = [&](const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const auto& name : names) paths.push_back(directory.file(name));
    return error_of([&] { make_dataset(paths, directory.file("out.efds")); });
  };
  for (const std::string name : {"a.pt", "a.pth", "a.efds", "a.safetensors", "a.jsonl"}) {
    write_bytes(directory.file(name), text);
    EXPECT_EQ(make({name}), "bad_file: " + directory.file(name));
    EXPECT_EQ(make({"a.txt", name}), "bad_file: " + directory.file(name));
  }
  write_any(directory.file("good.jsonl"), sample_dataset(3, 4));
  EXPECT_EQ(make({"a.txt", "good.jsonl"}), "bad_argument: inputs");
  EXPECT_EQ(make({"a.txt", "README"}), "no error");
}

TEST(Make, DefaultCorpusIsRealEnglishAndTheSameEveryTime) {
  std::vector<std::string> corpus;
  try {
    corpus = default_corpus();
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  const TemporaryDirectory directory;
  const Dataset made = make_dataset({}, directory.file("a.efds"));
  EXPECT_GT(made.rows, 500);
  EXPECT_LE(made.rows, 5021);
  make_dataset({}, directory.file("b.efds"));
  EXPECT_EQ(read_bytes(directory.file("a.efds")), read_bytes(directory.file("b.efds")));
  EXPECT_EQ(report_texts(made).empty, 0u);
}

TEST(Describe, TellsWhatIsThere) {
  const TemporaryDirectory directory;
  Dataset dataset = sample_dataset(4, 6);
  dataset.inputs[6 * 2] = std::numeric_limits<float>::quiet_NaN();
  dataset.texts = TextTable();
  for (const char* text : {"", "\xFF", "c", "d", "e", "f", "g", "h"}) dataset.texts.add(text);
  write_any(directory.file("a.efds"), dataset);
  const DatasetDescription description = describe_dataset(directory.file("a.efds"));
  const auto json = nlohmann::json::parse(description.json);
  EXPECT_EQ(json["rows"], 4);
  EXPECT_EQ(json["invalid_row_numbers"], nlohmann::json::array({2}));
  EXPECT_EQ(json["empty_texts"], 1);
  EXPECT_EQ(json["invalid_utf8_texts"], 1);
  EXPECT_EQ(json["sections"].size(), 4u);
  EXPECT_NE(description.text.find("remark: 1 texts are not valid UTF-8"), std::string::npos);
}

}  // namespace
}  // namespace twinbench
