// JSON lines: round trips, lines that are wrong, and numbers at the edge of fp32.
#include "src/formats/jsonl.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/formats/test_support.h"

namespace twinbench {
namespace {

std::string error_of_lines(const std::string& lines) {
  return error_of([&] { parse_jsonl(as_bytes(lines)); });
}

TEST(Jsonl, RoundTripIsBitwise) {
  Dataset dataset = sample_dataset(5, 7);
  dataset.inputs[0] = -0.0f;
  dataset.inputs[1] = std::numeric_limits<float>::denorm_min();
  dataset.inputs[2] = std::numeric_limits<float>::max();
  dataset.inputs[3] = 16777216.0f;
  dataset.inputs[4] = 1e20f;
  for (std::uint32_t i = 0; i < 7; ++i) {
    dataset.targets[i] = std::bit_cast<float>(philox(1234, i, 0, 0, 0).w[0] & 0x7EFFFFFFu);
  }
  const TemporaryDirectory directory;
  write_jsonl(directory.file("a.jsonl"), dataset);
  const Dataset read = parse_jsonl(as_bytes(read_bytes(directory.file("a.jsonl"))));
  ASSERT_EQ(read.rows, 5);
  ASSERT_EQ(read.width, 7);
  EXPECT_EQ(std::memcmp(read.inputs.data(), dataset.inputs.data(), 35 * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(read.targets.data(), dataset.targets.data(), 35 * sizeof(float)), 0);
  EXPECT_EQ(read.texts.blob(), dataset.texts.blob());
}

TEST(Jsonl, EmbeddingsMayBeAbsent) {
  const std::string lines =
      "{\"input\":\"a b c\",\"target\":\"\"}\r\n\n{\"target\":\"d\",\"input\":\"e\",\"metadata\":[1]}";
  const Dataset dataset = parse_jsonl(as_bytes(lines), 32);
  EXPECT_EQ(dataset.rows, 2);
  EXPECT_EQ(dataset.width, 32);
  EXPECT_EQ(dataset.target_text(0), "");
  EXPECT_EQ(dataset.remarks.size(), 1u);
  EXPECT_EQ(drop_invalid_rows(const_cast<Dataset&>(dataset)), 0);
  EXPECT_EQ(parse_jsonl({}).rows, 0);
}

TEST(Jsonl, WrongLinesAreNamed) {
  const std::string good = "{\"input\":\"a\",\"target\":\"b\",\"input_embedding\":[1,2],\"target_embedding\":[3,4]}\n";
  EXPECT_EQ(error_of_lines(good), "no error");
  EXPECT_EQ(error_of_lines(good + "{"), "corrupt: JSONL line 2 JSON");
  EXPECT_EQ(error_of_lines(good + "\n[]"), "corrupt: JSONL line 3 JSON");
  EXPECT_EQ(error_of_lines("{\"input\":\"a\"}"), "corrupt: JSONL line 1 target");
  EXPECT_EQ(error_of_lines("{\"input\":1,\"target\":\"b\"}"), "corrupt: JSONL line 1 input");
  EXPECT_EQ(error_of_lines("{\"inptu\":\"a\",\"target\":\"b\"}"), "bad_argument: JSONL line 1 key");
  EXPECT_EQ(error_of_lines("{\"input\":\"a\",\"input\":\"b\",\"target\":\"b\"}"), "corrupt: JSONL line 1 input");
  EXPECT_EQ(error_of_lines(good + "{\"input\":\"a\",\"target\":\"b\"}"), "corrupt: JSONL line 2 embeddings");
  EXPECT_EQ(error_of_lines("{\"input\":\"\xFF\",\"target\":\"b\"}"), "corrupt: JSONL line 1 JSON");
  const auto with = [](const std::string& numbers) {
    return error_of_lines("{\"input\":\"a\",\"target\":\"b\",\"input_embedding\":" + numbers +
                          ",\"target_embedding\":[1]}");
  };
  EXPECT_EQ(with("[1]"), "no error");
  EXPECT_EQ(with("[1,2]"), "dim_mismatch: JSONL line 1 target_embedding");
  EXPECT_EQ(with("[]"), "corrupt: JSONL line 1 input_embedding");
  EXPECT_EQ(with("[\"1\"]"), "corrupt: JSONL line 1 input_embedding");
  EXPECT_EQ(with("[NaN]"), "corrupt: JSONL line 1 JSON");
  EXPECT_EQ(with("[1e999]"), "corrupt: JSONL line 1 JSON");
  EXPECT_EQ(with("[1e39]"), "non_finite: JSONL line 1 input_embedding");
  EXPECT_EQ(with("[3.4028235e38]"), "no error");
  EXPECT_EQ(with("[-3.40282357e38]"), "non_finite: JSONL line 1 input_embedding");  // rounds to infinity
}

TEST(Jsonl, DeepNestingIsAnErrorNotACrash) {
  EXPECT_EQ(error_of_lines("{\"input\":" + std::string(1'000'000, '[')), "corrupt: JSONL line 1 JSON");
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_EQ(error_of_lines("{\"input\":\"a\",\"target\":\"b\",\"metadata\":" + deep + "}"), "no error");
}

TEST(Jsonl, TextsThatJsonCannotHold) {
  Dataset dataset = sample_dataset(1, 4);
  dataset.texts = TextTable();
  dataset.texts.add("\x80");
  dataset.texts.add("");
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { write_jsonl(directory.file("a.jsonl"), dataset); }), "corrupt: text of row 0");
  EXPECT_EQ(files_in(directory.path()), 0u);
}

}  // namespace
}  // namespace twinbench
