// Checkpoint files: bytes as laid down, round trips, and every kind of damage named.
#include "src/formats/checkpoint_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/formats/test_support.h"

namespace twinbench {
namespace {

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values;
  for (std::uint32_t i = 0; i < count; ++i) {
    const PhiloxWords words = philox(7, i, 0, 0, philox_tag(PhiloxStream::kSyntheticData, 0));
    values.push_back(0.05f * philox_normal_pair(words.w[0], words.w[1]).cosine);
  }
  return values;
}

TensorBytes floats(const std::string& name, const std::vector<float>& values) {
  return {name,
          ElementType::kF32,
          {static_cast<std::int64_t>(values.size())},
          {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float)}};
}

TensorBytes floats(const std::string& name, std::vector<float>&& gone) = delete;  // what is returned points into it

class CheckpointFileTest : public ::testing::Test {
 protected:
  std::string write(const std::vector<TensorBytes>& sections, SectionCodec codec, const std::string& name = "a.efck") {
    PlaneCompressor compressor;
    bytes_written_ =
        write_checkpoint(directory_.file(name), sections, {{"config.lattice_width", "50"}}, 12, codec, compressor);
    return directory_.file(name);
  }
  // What reading all of these bytes throws.
  static std::string error_of_bytes(const std::string& bytes) {
    return error_of([&] {
      const CheckpointView view(as_bytes(bytes));
      for (const CheckpointSection& section : view.sections()) {
        std::vector<std::uint8_t> into(section.bytes);
        view.read(section, into);
      }
    });
  }

  TemporaryDirectory directory_;
  std::uint64_t bytes_written_ = 0;
  const std::vector<float> weights_ = numbers(30000), few_ = {1.5f, -2.0f};
  const std::vector<TensorBytes> sections_ = {floats("parameters/0", weights_), floats("frozen", few_)};
};

// Written down by hand; the checksums are Python's zlib.crc32.
TEST_F(CheckpointFileTest, BytesAreThoseOfTheLayout) {
  const std::string bytes = read_bytes(write({floats("frozen", few_)}, SectionCodec::kStored));
  const std::string index =
      R"({"metadata":{"config.lattice_width":"50"},"sections":[{"name":"frozen","type":"F32","shape":[2],)"
      R"("codec":"stored","stored":8,"crc":"ccdf2c3a"}]})";
  std::string expected("EFCK\x01\0\0\0\x0c\0\0\0\0\0\0\0", 16);
  append_little(expected, std::uint32_t{4211829300u});
  append_little(expected, std::uint32_t{0});
  append_little(expected, 1.5f);
  append_little(expected, -2.0f);
  expected += index;
  append_little(expected, std::uint64_t{32});
  append_little(expected, static_cast<std::uint64_t>(index.size()));
  append_little(expected, static_cast<std::uint64_t>(32 + index.size() + 36));
  append_little(expected, std::uint32_t{4282935332u});
  append_little(expected, std::uint32_t{4139092777u});
  EXPECT_EQ(bytes, expected + "KCFE");
}

TEST_F(CheckpointFileTest, EveryTypeComesBackBitForBit) {
  std::string data(1 << 20, '\0');  // several blocks of planes, the last one short
  for (std::uint32_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i % 7 == 0 ? i * 2654435761u >> 24 : 0);
  std::vector<TensorBytes> sections;
  for (const char* type : {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"}) {
    const ElementType element = *element_type(type);
    const std::int64_t rows =
        (static_cast<std::int64_t>(data.size()) - 24) / 3 / static_cast<std::int64_t>(bytes_of(element));
    sections.push_back(
        {type, element, {rows, 3}, as_bytes(data).first(static_cast<std::size_t>(3 * rows) * bytes_of(element))});
  }
  sections.push_back({"scalar", ElementType::kF32, {}, as_bytes(data).first(4)});
  sections.push_back({"empty", ElementType::kF32, {3, 0}, {}});
  for (const SectionCodec codec : {SectionCodec::kStored, SectionCodec::kPlanes}) {
    const CheckpointFile file(write(sections, codec));
    EXPECT_EQ(file.view().sequence(), 12u);
    EXPECT_EQ(file.view().metadata().at("config.lattice_width"), "50");
    ASSERT_EQ(file.view().sections().size(), sections.size());
    for (const TensorBytes& tensor : sections) {
      std::vector<std::uint8_t> read(tensor.bytes.size());
      file.view().read(tensor.name, tensor.type, tensor.shape, read);
      EXPECT_EQ(as_text(read), as_text(tensor.bytes)) << tensor.name;
    }
  }
}

TEST_F(CheckpointFileTest, IsNeverLargerThanTensorsAndHeader) {
  write(sections_, SectionCodec::kStored);
  const std::uint64_t stored = bytes_written_;
  write(sections_, SectionCodec::kPlanes);
  EXPECT_LT(bytes_written_, stored * 9 / 10) << "weights of one magnitude have exponents alike";
  std::string noise(100000, '\0');
  for (std::uint32_t i = 0; i < noise.size(); ++i)
    noise[i] = static_cast<char>(philox(3, i, 0, 0, philox_tag(PhiloxStream::kSyntheticData, 0)).w[0]);
  const std::vector<TensorBytes> nothing_to_gain = {{"noise", ElementType::kU8, {100000}, as_bytes(noise)}};
  write(nothing_to_gain, SectionCodec::kStored);
  const std::uint64_t plain = bytes_written_;
  write(nothing_to_gain, SectionCodec::kPlanes);
  EXPECT_LE(bytes_written_, plain);
}

TEST_F(CheckpointFileTest, EveryFlippedBitIsFound) {
  const std::vector<float> some(weights_.begin(), weights_.begin() + 60);
  const std::vector<TensorBytes> sections = {floats("parameters/0", some)};
  for (const SectionCodec codec : {SectionCodec::kStored, SectionCodec::kPlanes}) {
    const std::string bytes = read_bytes(write(sections, codec));
    ASSERT_EQ(error_of_bytes(bytes), "no error");
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      EXPECT_NE(error_of_bytes(damaged), "no error") << "bit " << bit;
    }
  }
}

TEST_F(CheckpointFileTest, DamageIsNamed) {
  const std::string path = write(sections_, SectionCodec::kPlanes), bytes = read_bytes(path);
  const CheckpointSection weights = CheckpointFile(path).view().section("parameters/0"),
                          frozen = CheckpointFile(path).view().section("frozen");
  const auto flipped = [&](std::size_t at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    return error_of_bytes(damaged);
  };
  EXPECT_EQ(flipped(weights.offset + weights.stored / 2), "corrupt: checkpoint section parameters/0");
  EXPECT_EQ(flipped(frozen.offset), "corrupt: checkpoint section frozen");
  EXPECT_EQ(flipped(0), "bad_file: checkpoint magic");
  EXPECT_EQ(flipped(9), "corrupt: checkpoint header");
  EXPECT_EQ(flipped(frozen.offset + frozen.stored + 3), "corrupt: checkpoint index");
  EXPECT_EQ(flipped(bytes.size() - 20), "corrupt: checkpoint footer");
  for (std::size_t length = 0; length < bytes.size(); length = length < 100 ? length + 1 : length * 5 / 4)
    EXPECT_TRUE(error_of_bytes(bytes.substr(0, length)).starts_with("truncated: checkpoint ")) << length;
  std::string newer = bytes;
  newer[4] = 2;
  store_little(reinterpret_cast<std::uint8_t*>(newer.data()) + 16,
               static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const unsigned char*>(newer.data()), 16)));
  EXPECT_EQ(error_of_bytes(newer), "bad_file: checkpoint version");
}

// A file that was made to deceive: its checksums are right.
TEST_F(CheckpointFileTest, ContradictionsAreRefusedBeforeMemoryIsAskedFor) {
  const auto forged = [](const std::string& section) {
    const std::string index = R"({"metadata":{},"sections":[)" + section + "]}";
    const auto header = checkpoint_header(1);
    const auto footer = checkpoint_footer(kCheckpointHeaderBytes + 4, index);
    return std::string(as_text(header)) + "data" + index + std::string(as_text(footer));
  };
  const auto error = [&](const std::string& section) { return error_of_bytes(forged(section)); };
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[4],"codec":"stored","stored":4,"crc":"adf3f363"})"), "no error");
  const std::string named = "corrupt: checkpoint section a";
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[5],"codec":"stored","stored":4,"crc":"00000001"})"), named);
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[9],"codec":"stored","stored":9,"crc":"00000001"})"), named);
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[1000000000000],"codec":"planes","stored":4,"crc":"00000001"})"),
            named);
  EXPECT_EQ(
      error(R"({"name":"a","type":"U8","shape":[4294967296,4294967296],"codec":"planes","stored":4,"crc":"00000001"})"),
      named);
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[-4],"codec":"stored","stored":4,"crc":"00000001"})"), named);
  EXPECT_EQ(error(R"({"name":"a","type":"F99","shape":[1],"codec":"stored","stored":4,"crc":"00000001"})"), named);
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[4],"codec":"stored","stored":4,"crc":"1"})"), named);
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[4],"codec":"lzma","stored":4,"crc":"00000001"})"), named);
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[3],"codec":"stored","stored":3,"crc":"00000001"})"),
            "corrupt: checkpoint index");
  EXPECT_EQ(error(R"({"type":"U8"})"), "corrupt: checkpoint index");
  EXPECT_EQ(error(R"({"name":"a","type":"U8","shape":[100],"codec":"planes","stored":4,"crc":"adf3f363"})"), named)
      << "no frame of Zstandard";
}

TEST_F(CheckpointFileTest, AnotherModelsTensorsAreRefused) {
  const CheckpointFile file(write(sections_, SectionCodec::kPlanes));
  std::vector<std::uint8_t> into(8);
  EXPECT_EQ(error_of([&] {
              file.view().read("frozen", ElementType::kF32, {1, 2}, into);
            }),
            "dim_mismatch: checkpoint section frozen");
  EXPECT_EQ(error_of([&] { file.view().read("frozen", ElementType::kI32, {2}, into); }),
            "dim_mismatch: checkpoint section frozen");
  EXPECT_EQ(error_of([&] { file.view().section("mapper"); }), "unknown_name: checkpoint section");
  PlaneCompressor compressor;
  EXPECT_EQ(error_of([&] {
              write({sections_[0], sections_[0]}, SectionCodec::kStored);
            }),
            "bad_argument: checkpoint section");
  EXPECT_EQ(error_of([&] {
              write({{"a", ElementType::kF32, {3}, as_bytes("12345678")}}, SectionCodec::kStored);
            }),
            "bad_shape: checkpoint section a");
}

TEST_F(CheckpointFileTest, GoesThroughSafetensorsUnchanged) {
  const std::string path = write(sections_, SectionCodec::kPlanes);
  checkpoint_to_safetensors(CheckpointFile(path).view(), directory_.file("a.safetensors"));
  const SafetensorsFile plain(directory_.file("a.safetensors"));
  EXPECT_EQ(as_text(plain.contents().at("parameters/0").bytes), as_text(sections_[0].bytes));
  EXPECT_EQ(plain.contents().metadata.at("config.lattice_width"), "50");
  checkpoint_from_safetensors(directory_.file("a.safetensors"), directory_.file("b.efck"), SectionCodec::kPlanes);
  const CheckpointFile back(directory_.file("b.efck"));
  EXPECT_EQ(back.view().sequence(), 12u);
  EXPECT_EQ(back.view().metadata().size(), 1u);
  for (const TensorBytes& tensor : sections_) {
    std::vector<std::uint8_t> read(tensor.bytes.size());
    back.view().read(tensor.name, tensor.type, tensor.shape, read);
    EXPECT_EQ(as_text(read), as_text(tensor.bytes)) << tensor.name;
  }
  write_safetensors(directory_.file("bad.safetensors"), sections_, {{"sequence", "first"}});
  EXPECT_EQ(error_of([&] {
              checkpoint_from_safetensors(directory_.file("bad.safetensors"), directory_.file("c.efck"),
                                          SectionCodec::kStored);
            }),
            "corrupt: safetensors metadata sequence");
}

}  // namespace
}  // namespace twinbench
