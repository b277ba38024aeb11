// Tensors of every kind survive a file; complex ones as a last axis of 2.
#include "harness/command/tensor_file.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/formats/safetensors.h"

namespace twinbench {
namespace {

std::string refused(const std::string& path) {
  try {
    (void)read_tensor_file(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "read";
}

TEST(TensorFile, ComplexTensorsComeBack) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("complex.safetensors");
  TensorFile file;
  const at::Tensor field = at::randn({3, 4}, at::kComplexFloat), wide = at::randn({2}, at::kComplexDouble);
  file.inputs = {{"field", field}, {"plain", at::arange(5)}};
  file.outputs = {{"field", at::conj(field)}, {"wide", wide}, {"scalar", at::randn({}, at::kComplexFloat)}};
  write_tensor_file(path, file);
  const SafetensorsFile stored(path);
  EXPECT_EQ(stored.contents().at("input.field").shape, (std::vector<std::int64_t>{3, 4, 2}));
  EXPECT_NE(stored.contents().metadata.at("complex").find("output.wide"), std::string::npos);
  const TensorFile read = read_tensor_file(path);
  EXPECT_TRUE(at::equal(read.inputs["field"], field));
  EXPECT_TRUE(at::equal(read.outputs["field"], at::conj(field).resolve_conj()));
  EXPECT_TRUE(at::equal(read.outputs["wide"], wide));
  EXPECT_EQ(read.outputs["scalar"].dim(), 0);
  EXPECT_TRUE(at::equal(read.inputs["plain"], at::arange(5)));
}

TEST(TensorFile, ComplexMetadataMustFit) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("wrong.safetensors");
  TensorFile file;
  file.inputs = {{"x", at::zeros({3, 3})}};
  const std::pair<const char*, const char*> wrong[] = {
      {"[\"input.x\"]", "last axis of 2"}, {"[\"input.y\"]", "input.y"}, {"{}", "JSON list"}, {"[", "not JSON"}};
  for (const auto& [metadata, part] : wrong) {
    file.metadata = {{"complex", metadata}};
    write_tensor_file(path, file);
    EXPECT_NE(refused(path).find(part), std::string::npos) << metadata << ": " << refused(path);
  }
}

}  // namespace
}  // namespace twinbench
