// Planes of bytes come back as they were; a frame that is longer, shorter or damaged is named.
#include "src/formats/plane_codec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "src/formats/test_support.h"

namespace twinbench {
namespace {

std::vector<std::uint8_t> counted(std::size_t bytes) {
  std::vector<std::uint8_t> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::uint8_t>(i / 256);
  return all;
}

TEST(PlaneCodec, ElementsOfEveryWidthComeBack) {
  const std::vector<std::uint8_t> elements = counted(80'000);
  PlaneCompressor compressor;
  for (const std::size_t width : {1u, 2u, 4u, 8u}) {
    const ByteSpan frame = compressor.compress(elements, width);
    ASSERT_FALSE(frame.empty());
    std::vector<std::uint8_t> back(elements.size());
    decompress_planes(frame, width, back, "section");
    EXPECT_EQ(back, elements) << width;
  }
}

TEST(PlaneCodec, AFrameIsAllThereIsAndAllOfIt) {
  const std::vector<std::uint8_t> elements = counted(80'000);
  PlaneCompressor compressor;
  const ByteSpan right = compressor.compress(elements, 4);
  const auto error = [&](std::vector<std::uint8_t> frame, std::size_t bytes) {
    std::vector<std::uint8_t> back(bytes);
    return error_of([&] { decompress_planes(frame, 4, back, "section"); });
  };
  const std::vector<std::uint8_t> frame(right.begin(), right.end());
  EXPECT_EQ(error(frame, elements.size()), "no error");
  std::vector<std::uint8_t> longer = frame, shorter = frame, changed = frame;
  longer.push_back(0);
  shorter.pop_back();
  changed.back() ^= 1;  // of its checksum
  for (const auto& wrong : {longer, shorter, changed}) EXPECT_EQ(error(wrong, elements.size()), "corrupt: section");
  EXPECT_EQ(error(frame, elements.size() - 4), "corrupt: section");
  EXPECT_EQ(error(frame, elements.size() + 4), "corrupt: section");
}

}  // namespace
}  // namespace twinbench
