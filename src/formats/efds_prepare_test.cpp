// The prepare pass: which rows are dropped, the validity file beside the dataset, and independence of the thread count.
#include "src/formats/efds_prepare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/formats/row_check.h"
#include "src/formats/test_support.h"

namespace twinbench {
namespace {

class PrepareTest : public ::testing::Test {
 protected:
  std::string write(const Dataset& dataset) {
    write_efds(path_, dataset);
    return path_;
  }
  RowValidity prepared(int threads = 1) { return prepare_efds(EfdsFile(path_), threads); }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("a.efds");
};

TEST_F(PrepareTest, DropsNonFiniteRowsAndNormsOutOfRange) {
  Dataset dataset = sample_dataset(12, 8);
  dataset.inputs[1 * 8 + 3] = std::numeric_limits<float>::quiet_NaN();
  dataset.targets[3 * 8 + 7] = -std::numeric_limits<float>::infinity();
  for (int i = 0; i < 8; ++i) dataset.inputs[4 * 8 + i] = 0;                        // norm 0
  for (int i = 0; i < 8; ++i) dataset.inputs[5 * 8 + i] = i == 0 ? 100.0f : 0;      // norm 100: still legal
  for (int i = 0; i < 8; ++i) dataset.targets[6 * 8 + i] = i == 0 ? 100.01f : 0;    // above
  for (int i = 0; i < 8; ++i) dataset.targets[9 * 8 + i] = i == 7 ? 0.010001f : 0;  // just legal
  for (int i = 0; i < 8; ++i) dataset.targets[10 * 8 + i] = i == 7 ? 0.0099f : 0;   // below
  dataset.inputs[11 * 8] = std::numeric_limits<float>::max();  // finite; its square is not, in fp32
  write(dataset);
  const RowValidity validity = prepared();
  EXPECT_EQ(validity.dropped, (std::vector<std::int64_t>{1, 3, 4, 6, 10, 11}));
  EXPECT_EQ(validity.bitmap, (std::vector<std::uint8_t>{0b10100101, 0b00000011}));
  EXPECT_EQ(error_of([&] { check_finite(dataset); }), "non_finite: input_embeddings row 1");
  EXPECT_EQ(drop_invalid_rows(dataset), 6);
  EXPECT_EQ(dataset.rows, 6);
  EXPECT_EQ(dataset.input_text(5), "input 9");
  EXPECT_NO_THROW(check_finite(dataset));
}

TEST_F(PrepareTest, SameResultForAnyThreadsAndTypes) {
  for (const StoredType type : {StoredType::kFp32, StoredType::kBf16}) {
    Dataset dataset = sample_dataset(2001, 96, type);
    for (const int row : {0, 7, 8, 999, 2000}) dataset.targets[row * 96 + 95] = std::numeric_limits<float>::quiet_NaN();
    write(dataset);
    const RowValidity one = prepared(1);
    EXPECT_EQ(one.dropped, (std::vector<std::int64_t>{0, 7, 8, 999, 2000}));
    for (const int threads : {2, 3, 16}) EXPECT_EQ(prepared(threads).bitmap, one.bitmap) << threads;
  }
}

TEST_F(PrepareTest, AFlippedBitIsFoundInAnyChunk) {
  write(sample_dataset(2001, 96));
  const std::string good = read_bytes(path_);
  const EfdsHeader header = parse_efds_header(as_bytes(good));
  for (const std::uint64_t at : {std::uint64_t{0}, header.length[0] / 2, header.length[0] - 1}) {
    std::string bytes = good;
    bytes[header.offset[kEfdsTargets] + at] ^= 1;
    write_bytes(path_, bytes);
    EXPECT_EQ(error_of([&] { prepared(2); }), "corrupt: target section") << at;
    EXPECT_EQ(files_in(directory_.path()), 1u);  // no validity file for a corrupt dataset
  }
}

TEST_F(PrepareTest, TheValidityFileIsUsedUntilTheContentsChange) {
  Dataset dataset = sample_dataset(20, 8);
  write(dataset);
  bool ran = false;
  load_validity(EfdsFile(path_), 1, &ran);
  EXPECT_TRUE(ran);
  load_validity(EfdsFile(path_), 1, &ran);
  EXPECT_FALSE(ran);
  dataset.inputs[8 * 13] = std::numeric_limits<float>::quiet_NaN();
  write(dataset);
  EXPECT_EQ(load_validity(EfdsFile(path_), 1, &ran).dropped, (std::vector<std::int64_t>{13}));
  EXPECT_TRUE(ran);
}

TEST_F(PrepareTest, ADamagedValidityFileIsMadeAgain) {
  write(sample_dataset(20, 8));
  const RowValidity expected = prepared();
  const std::string good = read_bytes(validity_path(path_));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] ^= 0x40;
    write_bytes(validity_path(path_), bytes);
    bool ran = false;
    EXPECT_EQ(load_validity(EfdsFile(path_), 1, &ran).bitmap, expected.bitmap);
    EXPECT_TRUE(ran) << "byte " << at;
  }
  write_bytes(validity_path(path_), good.substr(0, good.size() - 1));
  bool ran = false;
  load_validity(EfdsFile(path_), 1, &ran);
  EXPECT_TRUE(ran);
}

TEST_F(PrepareTest, NormalisedRowsHaveNormOneAndZeroRowsStay) {
  Dataset dataset = sample_dataset(2, 24);
  for (auto& value : dataset.inputs) value *= 37.0f;
  std::fill(dataset.targets.begin(), dataset.targets.begin() + 24, 0.0f);
  normalise_rows(dataset);
  EXPECT_NEAR(std::sqrt(row_square_sum(dataset.input(1), 24)), 1.0, 1e-6);
  EXPECT_EQ(row_square_sum(dataset.target(0), 24), 0.0);  // 0 / 1e-12
}

TEST_F(PrepareTest, RowSumHandlesEveryWidth) {
  for (int width = 0; width < 70; ++width) {
    std::vector<float> values(static_cast<std::size_t>(width), 2.0f);
    EXPECT_EQ(row_square_sum(values.data(), width), 4.0 * width);
    if (width == 0) continue;
    values.back() = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(row_square_sum(values.data(), width)));
  }
}

}  // namespace
}  // namespace twinbench
