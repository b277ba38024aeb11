// safetensors: round trips, and headers that lie.
#include "src/formats/safetensors.h"

#include <gtest/gtest.h>

#include "src/formats/test_support.h"

namespace twinbench {
namespace {

std::string file_with(const std::string& header, const std::string& data) {
  std::string bytes;
  append_little(bytes, static_cast<std::uint64_t>(header.size()));
  return bytes + header + data;
}

std::string error_of_header(const std::string& header, const std::string& data = "12345678") {
  const std::string bytes = file_with(header, data);
  return error_of([&] { parse_safetensors(as_bytes(bytes)); });
}

TEST(Safetensors, RoundTripOfEveryTypeAndMetadata) {
  const TemporaryDirectory directory;
  const std::string data(64, '\x5A');
  std::vector<TensorBytes> tensors;
  for (const char* type : {"BOOL", "F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8"}) {
    const ElementType element = *element_type(type);
    tensors.push_back({std::string("tensor ") + type, element, {2, 3}, as_bytes(data).first(6 * bytes_of(element))});
  }
  tensors.push_back({"scalar", ElementType::kF32, {}, as_bytes(data).first(4)});
  tensors.push_back({"empty", ElementType::kF32, {3, 0}, {}});
  const std::map<std::string, std::string> metadata = {{"cell", "a/b/c"}, {"\xC3\xA9", "\"quoted\""}};
  write_safetensors(directory.file("a.safetensors"), tensors, metadata);
  const SafetensorsFile file(directory.file("a.safetensors"));
  EXPECT_EQ(file.contents().metadata, metadata);
  ASSERT_EQ(file.contents().tensors.size(), tensors.size());
  for (const TensorBytes& tensor : tensors) {
    const TensorBytes& read = file.contents().at(tensor.name);
    EXPECT_EQ(read.type, tensor.type);
    EXPECT_EQ(read.shape, tensor.shape);
    EXPECT_EQ(as_text(read.bytes), as_text(tensor.bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(read.bytes.data()) % bytes_of(read.type), 0u) << tensor.name;
  }
  EXPECT_EQ(file.contents().find("absent"), nullptr);
  EXPECT_EQ(error_of([&] { file.contents().at("absent"); }), "unknown_name: tensor");
}

TEST(Safetensors, HeaderLength) {
  EXPECT_EQ(error_of([] { parse_safetensors(as_bytes("1234567")); }), "truncated: safetensors size");
  std::string bytes;
  append_little(bytes, ~std::uint64_t{0});
  EXPECT_EQ(error_of([&] { parse_safetensors(as_bytes(bytes)); }), "bad_file: safetensors header length");
  bytes.clear();
  append_little(bytes, std::uint64_t{50});
  bytes += "{}";
  EXPECT_EQ(error_of([&] { parse_safetensors(as_bytes(bytes)); }), "truncated: safetensors size");
  EXPECT_EQ(error_of_header("[]", ""), "bad_file: safetensors header");
  EXPECT_EQ(error_of_header("{}", ""), "no error");
}

TEST(Safetensors, MalformedHeaders) {
  const char* const kHeaders[] = {
      "{\"a\":1}",
      "{\"a\":{}}",
      "{\"a\":",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}",
      R"({"a":{"dtype":7,"shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})",
      R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})",                      // too small
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})",                      // too large
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})",                      // backwards
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",                     // outside
      R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8]}})",    // above 2^63
      R"({"a":{"dtype":"F64","shape":[4611686018427387904,2],"data_offsets":[0,8]}})",  // product overflows
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",                      // a tail left over
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",                      // a hole
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"__metadata__":{"k":1},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      R"({"__metadata__":[],"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
      "{\"\xFF\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
  };
  for (const char* header : kHeaders) EXPECT_EQ(error_of_header(header).substr(0, 7), "corrupt") << header;
  EXPECT_EQ(error_of_header(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})"),
            "bad_dtype: safetensors tensor a");
  EXPECT_EQ(error_of_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}   )"), "no error");
  EXPECT_EQ(error_of_header(R"({"a":{"dtype":"F32","shape":[7,0,5],"data_offsets":[0,0]}})", ""), "no error");
  EXPECT_EQ(error_of_header(std::string(200'000, '[')), "bad_file: safetensors header");
  EXPECT_EQ(error_of_header("{\"a\":" + std::string(200'000, '[')).substr(0, 7), "corrupt");
}

TEST(Safetensors, WritersMistakesLeaveNoFile) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("a.safetensors"), data = "12345678";
  const TensorBytes good{"a", ElementType::kF32, {2}, as_bytes(data)};
  EXPECT_EQ(error_of([&] { write_safetensors(path, {good, good}); }), "bad_argument: tensor name");
  EXPECT_EQ(error_of([&] {
              write_safetensors(path, {{"", ElementType::kF32, {2}, as_bytes(data)}});
            }),
            "bad_argument: tensor name");
  EXPECT_EQ(error_of([&] {
              write_safetensors(path, {{"a", ElementType::kF32, {3}, as_bytes(data)}});
            }),
            "bad_shape: tensor a");
  EXPECT_EQ(error_of([&] { write_safetensors(path, {good}, {{"k", "\xFF"}}); }).substr(0, 12), "bad_argument");
  EXPECT_EQ(files_in(directory.path()), 0u);
}

}  // namespace
}  // namespace twinbench
