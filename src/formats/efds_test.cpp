// EFDS: round trips, every typed error of the specification, and hostile bytes.
#include "src/formats/efds.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "src/formats/efds_prepare.h"
#include "src/formats/float_formats.h"
#include "src/formats/test_support.h"

namespace twinbench {
namespace {

class EfdsTest : public ::testing::Test {
 protected:
  std::string write(const Dataset& dataset, const std::string& name = "a.efds") {
    write_efds(directory_.file(name), dataset);
    return directory_.file(name);
  }
  std::string bytes_of_file(const Dataset& dataset) { return read_bytes(write(dataset)); }
  // What opening and verifying the bytes throws.
  static std::string error_of_bytes(const std::string& bytes) {
    return error_of([&] { verify_efds(EfdsView(as_bytes(bytes))); });
  }
  // The bytes with the header checksum made right again: a forgery, not an accident.
  static std::string forged(std::string bytes) {
    store_little(reinterpret_cast<std::uint8_t*>(bytes.data()) + 64,
                 static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), 64)));
    return bytes;
  }
  template <typename T>
  static std::string with(std::string bytes, std::size_t at, T value) {
    store_little(reinterpret_cast<std::uint8_t*>(bytes.data()) + at, value);
    return bytes;
  }

  TemporaryDirectory directory_;
};

TEST_F(EfdsTest, LayoutIsThatOfTheSpecification) {
  const EfdsHeader header = efds_layout(5021, 768, StoredType::kFp32, 1000);
  EXPECT_EQ(header.length[kEfdsInputs] + header.length[kEfdsTargets], 30'849'024u);  // the documented "31 MB"
  EXPECT_EQ(header.offset[kEfdsInputs], 4096u);
  EXPECT_EQ(header.offset[kEfdsTargets], 15'429'632u);  // 4096 + 15424512 = 15428608, up to a multiple of 4096
  EXPECT_EQ(header.length[kEfdsIndex], 10'043u * 8);
  EXPECT_EQ(header.file_size, header.offset[kEfdsBlob] + 1000);
}

TEST_F(EfdsTest, WriteReadWriteIsByteIdentical) {
  for (const StoredType type : {StoredType::kFp32, StoredType::kBf16}) {
    for (const std::int64_t rows : {0, 1, 7, 130}) {
      const std::string first = write(sample_dataset(rows, 13, type));
      const Dataset read = read_efds(EfdsFile(first).view());
      EXPECT_EQ(read_bytes(write(read, "b.efds")), read_bytes(first)) << name_of(type) << " " << rows;
    }
  }
}

TEST_F(EfdsTest, EveryRowReadsBackBitwise) {
  Dataset dataset = sample_dataset(3, 5);
  dataset.inputs[4] = std::bit_cast<float>(0x7FC01234u);  // a NaN with a payload
  dataset.targets[0] = -0.0f;
  dataset.targets[1] = std::numeric_limits<float>::denorm_min();
  const EfdsFile file(write(dataset));
  const Dataset read = read_efds(file.view());
  EXPECT_EQ(std::memcmp(read.inputs.data(), dataset.inputs.data(), 15 * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(read.targets.data(), dataset.targets.data(), 15 * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(file.view().targets(), dataset.targets.data(), 15 * sizeof(float)), 0);
  EXPECT_EQ(file.view().text(3), "target of row 1");
}

TEST_F(EfdsTest, Bf16RoundsToNearestEvenAndKeepsEveryBf16Value) {
  EXPECT_EQ(narrow_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // a tie, to even
  EXPECT_EQ(narrow_bf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(narrow_bf16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_EQ(narrow_bf16(std::bit_cast<float>(0x7F800001u)), 0x7FC0);  // a NaN may not become infinity
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    ASSERT_EQ(narrow_bf16(widen_bf16(static_cast<std::uint16_t>(bits))), bits);
  }
  EXPECT_EQ(widen_f16(0x3C01), 1.0f + 0x1p-10f);
  EXPECT_EQ(widen_f16(0x8001), -0x1p-24f);
  EXPECT_TRUE(std::isinf(widen_f16(0x7C00)));
  EXPECT_TRUE(std::isnan(widen_f16(0x7E00)));
}

TEST_F(EfdsTest, NoRowsIsValid) {
  const EfdsFile file(write(sample_dataset(0, 8)));
  EXPECT_EQ(file.view().rows(), 0);
  const RowValidity validity = prepare_efds(file, 2);
  EXPECT_TRUE(validity.bitmap.empty());
  EXPECT_TRUE(validity.dropped.empty());
}

TEST_F(EfdsTest, HeaderErrors) {
  const std::string good = bytes_of_file(sample_dataset(3, 4));
  EXPECT_EQ(error_of_bytes(good), "no error");
  EXPECT_EQ(error_of_bytes("EFDT" + good.substr(4)), "bad_file: magic");
  EXPECT_EQ(error_of_bytes(with(good, 4, 2u)), "bad_file: version");
  EXPECT_EQ(error_of_bytes(forged(with(good, 20, 2u))), "bad_file: type");
  EXPECT_EQ(error_of_bytes(good + "x"), "bad_file: file size");
  EXPECT_EQ(error_of_bytes(good.substr(0, good.size() - 1)), "truncated: file size");
  EXPECT_EQ(error_of_bytes(with(good, 8, std::uint64_t{4})), "corrupt: header");
  EXPECT_EQ(error_of_bytes(with(good, 100, '\1')), "corrupt: header");
  EXPECT_EQ(error_of_bytes(""), "truncated: file size");
}

TEST_F(EfdsTest, LyingLengthsAndOffsets) {
  const std::string good = bytes_of_file(sample_dataset(3, 4));
  EXPECT_EQ(error_of_bytes(forged(with(good, 8, std::uint64_t{1} << 63))), "corrupt: rows");
  EXPECT_EQ(error_of_bytes(forged(with(good, 8, ~std::uint64_t{0}))), "corrupt: rows");
  EXPECT_EQ(error_of_bytes(forged(with(good, 8, std::uint64_t{1} << 58))), "corrupt: rows");
  EXPECT_EQ(error_of_bytes(forged(with(good, 8, std::uint64_t{1000}))), "corrupt: target section");
  EXPECT_EQ(error_of_bytes(forged(with(good, 16, 0u))), "corrupt: width");
  EXPECT_EQ(error_of_bytes(forged(with(good, 16, ~0u))), "corrupt: width");
  EXPECT_EQ(error_of_bytes(forged(with(good, 32, std::uint64_t{4096}))), "corrupt: target section");  // overlaps
  EXPECT_EQ(error_of_bytes(forged(with(good, 24, std::uint64_t{0}))), "corrupt: input section");
  EXPECT_EQ(error_of_bytes(forged(with(good, 48, ~std::uint64_t{0}))), "corrupt: text blob");
  EXPECT_EQ(error_of_bytes(forged(with(good, 56, ~std::uint64_t{0}))), "truncated: file size");
  EXPECT_EQ(error_of_bytes(forged(with(good, 56, std::uint64_t{64}))), "bad_file: file size");
}

TEST_F(EfdsTest, EveryTruncationIsAnErrorAndEveryHeaderBitIsChecked) {
  const std::string good = bytes_of_file(sample_dataset(2, 3));
  for (std::size_t length = 0; length < good.size(); length += length < 200 ? 1 : 97) {
    EXPECT_NE(error_of_bytes(good.substr(0, length)), "no error") << length;
  }
  for (std::size_t bit = 0; bit < 8 * kEfdsHeaderBytes; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(error_of_bytes(bytes), "no error") << "bit " << bit;
  }
}

TEST_F(EfdsTest, ChecksumMismatchNamesTheSection) {
  const std::string good = bytes_of_file(sample_dataset(3, 4));
  const EfdsHeader header = parse_efds_header(as_bytes(good));
  for (int section = 0; section < kEfdsSections; ++section) {
    std::string bytes = good;
    bytes[header.offset[section] + header.length[section] / 2] ^= 0x10;
    EXPECT_EQ(error_of_bytes(bytes), std::string("corrupt: ") + name_of_section(section));
  }
  EXPECT_EQ(error_of_bytes(with(good, 4000, '\1')), "corrupt: input section");  // padding
}

TEST_F(EfdsTest, TextOffsetsMustNotFallOrLeaveTheBlob) {
  Dataset dataset = sample_dataset(2, 4);
  using Offsets = std::vector<std::uint64_t>;
  for (const auto& [offsets, wrong] : {std::pair{Offsets{0, 5, 4, 8, 9}, 1}, {Offsets{0, 1, 2, 3, ~0ull}, 3}}) {
    dataset.texts = TextTable("some text of the blob", offsets);
    const std::string path = write(dataset);
    const EfdsFile file(path);
    EXPECT_EQ(error_of([&] { verify_efds(file.view()); }), "corrupt: text index");
    // The loader does not verify: the access itself is checked.
    EXPECT_EQ(error_of([&] { file.view().text(wrong); }), "corrupt: text index");
  }
}

TEST_F(EfdsTest, WidthOtherThanTheConfiguration) {
  const std::string path = write(sample_dataset(1, 4));
  EXPECT_EQ(error_of([&] { EfdsFile(path, 768); }).substr(0, 12), "dim_mismatch");
  EXPECT_NO_THROW(EfdsFile(path, 4));
}

TEST_F(EfdsTest, EmptyAndInvalidTextsAreKeptAsTheyAre) {
  Dataset dataset = sample_dataset(1, 4);
  dataset.texts = TextTable();
  dataset.texts.add("");
  dataset.texts.add("\xC3\x28 not UTF-8");
  const Dataset read = read_efds(EfdsFile(write(dataset)).view());
  EXPECT_EQ(read.input_text(0), "");
  EXPECT_EQ(read.target_text(0), "\xC3\x28 not UTF-8");
  EXPECT_EQ(report_texts(read).empty, 1u);
  EXPECT_EQ(report_texts(read).invalid_utf8, 1u);
}

TEST_F(EfdsTest, FailedWritesLeaveNothingBehind) {
  EXPECT_EQ(error_of([&] { write_efds(directory_.file("no/such/folder.efds"), sample_dataset(1, 4)); }).substr(0, 12),
            "input_output");
  const std::string path = write(sample_dataset(1, 4));
  const std::string before = read_bytes(path);
  // A full disk, as far as this process can tell: files may not grow beyond 10000 bytes.
  std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit old {};
  getrlimit(RLIMIT_FSIZE, &old);
  const struct rlimit small { 10'000, old.rlim_max };
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string error = error_of([&] { write_efds(path, sample_dataset(100, 64)); });
  setrlimit(RLIMIT_FSIZE, &old);
  EXPECT_EQ(error.substr(0, 12), "input_output");
  EXPECT_EQ(files_in(directory_.path()), 1u);
  EXPECT_EQ(read_bytes(path), before);
  EXPECT_EQ(error_of([&] { write_efds(path, Dataset{}); }), "out_of_range: width");
}

TEST_F(EfdsTest, NotAFile) {
  EXPECT_EQ(error_of([&] { EfdsFile file(directory_.path()); }).substr(0, 12), "input_output");
  EXPECT_EQ(error_of([&] { EfdsFile file(directory_.file("absent")); }).substr(0, 12), "input_output");
}

}  // namespace
}  // namespace twinbench
