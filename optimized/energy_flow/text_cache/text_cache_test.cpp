// What the engines do not ask of energy_flow.text_cache: its file, several threads, an encoder that fails, answers with
// and without it.
#include "optimized/energy_flow/common/text_cache.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow::text_cache {
namespace {

constexpr std::int64_t kTokens = 6, kCells = 5;

class TextCacheTest : public testing::Test {
 protected:
  TextCache made(std::int64_t limit, std::int64_t cells = kCells) {
    return TextCache({.limit = limit, .longest = 12, .tokens = kTokens, .cells = cells}, vocabulary_);
  }

  // The rows of texts, and how many were encoded for them.
  std::vector<float> rows_of(TextCache& cache, const std::vector<std::string>& texts, std::int64_t version = 0) {
    std::vector<TextCache::Text> given;
    for (const std::string& text : texts) given.push_back({text, static_cast<std::int64_t>(text.size())});
    std::vector<std::int32_t> ids(texts.size() * kTokens);
    std::vector<float> rows(texts.size() * kCells);
    std::atomic<int> encoded = 0;
    cache.serve(
        given, version,
        [&](const std::int32_t* of, std::int64_t at, float* row) {
          ++encoded;
          if (fails_) throw std::runtime_error("the encoder has failed");
          for (std::int64_t c = 0; c < kCells; ++c) row[c] = static_cast<float>(of[1] + 100 * c + 1000 * at);
        },
        ids.data(), rows.data());
    encoded_ = encoded;
    return rows;
  }

  std::vector<std::pair<std::int64_t, std::int64_t>> kept(const TextCache& cache) {
    std::vector<std::pair<std::int64_t, std::int64_t>> entries;
    cache.each([&](std::int64_t tag, std::int64_t version) { entries.emplace_back(tag, version); });
    return entries;
  }

  const Vocabulary vocabulary_{{"a", "bb", "ccc", "dddd"}};
  const TemporaryDirectory directory_;
  bool fails_ = false;
  int encoded_ = 0;
};

using Entries = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST_F(TextCacheTest, OneEntryServesABatchOfDuplicates) {
  TextCache cache = made(1);
  const std::vector<float> rows = rows_of(cache, {"a", "a", "bb", "a", "bb"});
  EXPECT_EQ(encoded_, 4) << "each change pushes the other one out";
  EXPECT_EQ(rows[0], rows[3 * kCells]);
  EXPECT_EQ(rows[2 * kCells], rows[4 * kCells]);
  EXPECT_EQ(kept(cache), (Entries{{2, 0}}));
  EXPECT_EQ(rows_of(cache, {"bb"}), std::vector<float>(rows.begin() + 2 * kCells, rows.begin() + 3 * kCells));
  EXPECT_EQ(encoded_, 0);
}

TEST_F(TextCacheTest, GoesThroughItsFileInItsOrder) {
  const std::string path = directory_.file("cache.efck");
  TextCache cache = made(3);
  const std::vector<float> rows = rows_of(cache, {"a", "bb", "ccc", "a"});
  cache.save(path, "epoch 3");
  TextCache back = made(3);
  EXPECT_EQ(back.restore(path, "epoch 3"), "");
  EXPECT_EQ(kept(back), kept(cache));
  EXPECT_EQ(kept(back), (Entries{{2, 0}, {3, 0}, {1, 0}}));
  EXPECT_EQ(rows_of(back, {"a", "bb", "ccc", "a"}), rows);
  EXPECT_EQ(encoded_, 0);

  TextCache others = made(3);
  EXPECT_EQ(others.restore(path, "epoch 4"), "");
  EXPECT_EQ(kept(others), (Entries{{2, -1}, {3, -1}, {1, -1}})) << "ids stay, rows of other parameters do not";
  TextCache smaller = made(2);
  EXPECT_EQ(smaller.restore(path, "epoch 3"), "");
  EXPECT_EQ(kept(smaller), (Entries{{3, 0}, {1, 0}})) << "the most recent ones";
}

TEST_F(TextCacheTest, ADamagedFileOrOneOfOtherSizesIsAWarning) {
  const std::string path = directory_.file("cache.efck");
  TextCache cache = made(3);
  rows_of(cache, {"a", "bb"});
  cache.save(path, "");
  TextCache wider = made(3, kCells + 1);
  EXPECT_NE(wider.restore(path, "").find("rows"), std::string::npos);
  EXPECT_EQ(wider.row_counts().misses, 0);
  EXPECT_TRUE(kept(wider).empty());

  std::string bytes;
  {
    std::ifstream from(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(from), {});
  }
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    std::ofstream(path, std::ios::binary) << flipped;
    TextCache into = made(3);
    rows_of(into, {"ccc"});
    EXPECT_NE(into.restore(path, ""), "") << "byte " << at;
    EXPECT_EQ(kept(into), (Entries{{3, 0}})) << "as it was";
  }
  EXPECT_NE(cache.restore(directory_.file("none"), ""), "");
}

TEST_F(TextCacheTest, NothingStaysOfABatchWhoseEncoderFails) {
  TextCache cache = made(4);
  rows_of(cache, {"a"});
  fails_ = true;
  EXPECT_THROW(rows_of(cache, {"a", "bb", "bb"}), std::runtime_error);
  fails_ = false;
  const std::vector<float> rows = rows_of(cache, {"bb", "a"});
  EXPECT_EQ(encoded_, 1);
  EXPECT_EQ(rows[0], 6);
  try {
    rows_of(cache, {"a", "a text too long"});
    FAIL() << "a text that is too long is taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange);
  }
}

TEST_F(TextCacheTest, TwoThreadsGetTheirOwnAnswers) {
  TextCache cache = made(2);
  std::atomic<int> wrong = 0;
  const auto ask = [&](std::int64_t start) {
    for (std::int64_t i = 0; i < 400; ++i) {
      const std::string text = vocabulary_.words()[static_cast<std::size_t>((start + i) % 4)];
      const TextCache::Text given{text, 0};
      std::int32_t ids[kTokens];
      float row[kCells];
      cache.serve(
          std::span(&given, 1), i % 3,
          [](const std::int32_t* of, std::int64_t at, float* to) {
            std::fill_n(to, kCells, static_cast<float>(of[1] + 1000 * at));
          },
          ids, row);
      wrong += row[kCells - 1] != static_cast<float>(kFirstWord + (start + i) % 4 + 1000 * (i % 3));
    }
  };
  std::thread loader(ask, 0), trainer(ask, 1);
  loader.join(), trainer.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.id_counts().hits + cache.id_counts().misses, 800);
}

// A million entries of two megabytes each, that no machine has: room is taken for those that come.
TEST_F(TextCacheTest, ALimitThatNothingComesNearToTakesNoMemory) {
  constexpr std::int64_t kLimit = 1'000'000, kLongest = 2 << 20;
  constexpr std::size_t kTexts = 40;
  TextCache cache({.limit = kLimit, .longest = kLongest, .tokens = kTokens, .cells = kCells}, vocabulary_);
  SurfaceTexts surfaces(kLimit, kCells, kLongest);
  std::vector<std::string> texts(kTexts);
  for (std::size_t i = 0; i < kTexts; ++i)
    texts[i] = vocabulary_.words()[i % 4] + " " + vocabulary_.words()[i / 4 % 4] + " " + vocabulary_.words()[i / 16];
  const auto said = [&](std::size_t i) {
    const std::vector<float> surface(kCells, static_cast<float>(i));
    return std::string(surfaces.find(surface.data(), static_cast<std::int64_t>(i), [&](char* text) {
      return static_cast<std::int64_t>(texts[i].copy(text, kLongest));
    }));
  };
  const std::vector<float> first = rows_of(cache, {texts.begin(), texts.begin() + kTexts / 2});
  const std::vector<float> rows = rows_of(cache, texts);
  EXPECT_EQ(encoded_, kTexts / 2) << "the second half, which needs more room";
  EXPECT_TRUE(std::equal(first.begin(), first.end(), rows.begin()));
  for (std::size_t i = 0; i < kTexts; ++i) EXPECT_EQ(said(i), texts[i]);
  for (const char* again : {"the next time", "the time after"}) {
    EXPECT_EQ(rows_of(cache, texts), rows) << again;
    EXPECT_EQ(encoded_, 0);
    for (std::size_t i = 0; i < kTexts; ++i) EXPECT_EQ(said(i), texts[i]) << again;
  }
  EXPECT_EQ(surfaces.counts().hits, 2 * kTexts);
  EXPECT_EQ(surfaces.counts().misses, kTexts);
}

NamedTensors answers(Variant variant, double enabled) {
  const Component& component = find_component("energy_flow.text_cache");
  Setting setting;
  setting.input_case = component.spec.cases[1];
  setting.input_case.options["text_cache_enabled"] = enabled;
  setting = completed(component.spec.signature, setting);
  const auto runnable = component.make(variant, Device(), generate_inputs(component.spec, setting, 3), setting);
  runnable->run();
  const NamedTensors outputs = runnable->outputs();
  NamedTensors copies;
  for (const char* name : {"token", "row", "text_bytes", "text_offsets"}) copies.set(name, outputs[name].clone());
  return copies;
}

TEST_F(TextCacheTest, NeverChangesAnAnswer) {
  for (const Variant variant : {Variant::kBaseline, Variant::kOptimized}) {
    const NamedTensors with = answers(variant, 1), without = answers(variant, 0);
    for (const auto& [name, tensor] : with) EXPECT_TRUE(tensor.equal(without[name])) << name;
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::text_cache
