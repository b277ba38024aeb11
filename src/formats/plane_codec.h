// Lossless compression of numbers: their bytes by significance, each a plane of its own, through Zstandard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/formats/bytes.h"

namespace twinbench {

// Byte k of every element, then byte k + 1 of every element: sign and exponent repeat, and lie together. `width` bytes
// an element, 1, 2, 4 or 8; the bytes are a multiple of it.
void to_planes(ByteSpan elements, std::size_t width, std::uint8_t* planes);
void from_planes(ByteSpan planes, std::size_t width, std::uint8_t* elements);

// One frame of Zstandard, with its checksum over what went in, of planes block by block. Keeps its memory: not for two
// threads at once.
class PlaneCompressor {
 public:
  PlaneCompressor();
  ~PlaneCompressor();
  PlaneCompressor(const PlaneCompressor&) = delete;
  PlaneCompressor& operator=(const PlaneCompressor&) = delete;

  // The frame, valid until the next call; empty where it would not be smaller than the elements. Throws kInternal.
  ByteSpan compress(ByteSpan elements, std::size_t width);

 private:
  struct Context;
  std::unique_ptr<Context> context_;
  std::vector<std::uint8_t> block_, frame_;
};

// The elements, into exactly their bytes. Throws kCorrupt, naming `what`, for a frame that is damaged, or of another
// length.
void decompress_planes(ByteSpan frame, std::size_t width, std::span<std::uint8_t> elements, const std::string& what);

}  // namespace twinbench
