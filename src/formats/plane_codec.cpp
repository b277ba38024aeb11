// Byte planes in blocks that stay in a core's cache, and Zstandard's streams over them.
#include "src/formats/plane_codec.h"

#include <zstd.h>

#include <algorithm>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;  // a multiple of every width; stays in a core's cache
// 1: about 800 MB/s a core. Higher levels take longer and find nothing more in the planes of weights.
constexpr int kLevel = 1;

template <typename Word>
void split(const std::uint8_t* from, std::size_t count, std::uint8_t* to) {
  for (std::size_t i = 0; i < count; ++i) {
    const Word word = load_little<Word>(from + i * sizeof(Word));
    for (std::size_t plane = 0; plane < sizeof(Word); ++plane)
      to[plane * count + i] = static_cast<std::uint8_t>(word >> (8 * plane));
  }
}

template <typename Word>
void join(const std::uint8_t* from, std::size_t count, std::uint8_t* to) {
  for (std::size_t i = 0; i < count; ++i) {
    Word word = 0;
    for (std::size_t plane = 0; plane < sizeof(Word); ++plane)
      word = static_cast<Word>(word | static_cast<Word>(from[plane * count + i]) << (8 * plane));
    store_little(to + i * sizeof(Word), word);
  }
}

std::size_t checked(std::size_t result) {
  if (ZSTD_isError(result))
    throw Error(ErrorKind::kInternal, "zstd", ZSTD_getErrorName(result), "compression of a section failed");
  return result;
}

}  // namespace

void to_planes(ByteSpan elements, std::size_t width, std::uint8_t* planes) {
  const std::size_t count = elements.size() / width;
  if (width == 2) return split<std::uint16_t>(elements.data(), count, planes);
  if (width == 4) return split<std::uint32_t>(elements.data(), count, planes);
  if (width == 8) return split<std::uint64_t>(elements.data(), count, planes);
  std::copy(elements.begin(), elements.end(), planes);
}

void from_planes(ByteSpan planes, std::size_t width, std::uint8_t* elements) {
  const std::size_t count = planes.size() / width;
  if (width == 2) return join<std::uint16_t>(planes.data(), count, elements);
  if (width == 4) return join<std::uint32_t>(planes.data(), count, elements);
  if (width == 8) return join<std::uint64_t>(planes.data(), count, elements);
  std::copy(planes.begin(), planes.end(), elements);
}

struct PlaneCompressor::Context {
  ZSTD_CCtx* stream = ZSTD_createCCtx();
  ~Context() { ZSTD_freeCCtx(stream); }
};

PlaneCompressor::PlaneCompressor() : context_(std::make_unique<Context>()), block_(kBlockBytes) {
  if (context_->stream == nullptr)
    throw Error(ErrorKind::kOutOfMemory, "zstd", "no compression context", "free memory");
  checked(ZSTD_CCtx_setParameter(context_->stream, ZSTD_c_compressionLevel, kLevel));
  checked(ZSTD_CCtx_setParameter(context_->stream, ZSTD_c_checksumFlag, 1));
}

PlaneCompressor::~PlaneCompressor() = default;

ByteSpan PlaneCompressor::compress(ByteSpan elements, std::size_t width) {
  if (elements.empty()) return {};
  if (frame_.size() < elements.size()) frame_.resize(elements.size());
  checked(ZSTD_CCtx_reset(context_->stream, ZSTD_reset_session_only));
  // Its length is not announced: by it Zstandard would choose how much memory it holds, and change that now and then.
  ZSTD_outBuffer out{frame_.data(), elements.size() - 1, 0};  // a frame that does not fit saves nothing
  for (std::size_t at = 0; at < elements.size(); at += kBlockBytes) {
    const ByteSpan block = elements.subspan(at, std::min(kBlockBytes, elements.size() - at));
    to_planes(block, width, block_.data());
    for (std::size_t plane = 0; plane < width; ++plane) {
      const bool last = at + block.size() == elements.size() && plane + 1 == width;
      ZSTD_inBuffer in{block_.data() + plane * (block.size() / width), block.size() / width, 0};
      // A plane to itself: what repeats in one says nothing of the next.
      while (checked(ZSTD_compressStream2(context_->stream, &out, &in, last ? ZSTD_e_end : ZSTD_e_flush)) != 0)
        if (out.pos == out.size) return {};
    }
  }
  return {frame_.data(), out.pos};
}

void decompress_planes(ByteSpan frame, std::size_t width, std::span<std::uint8_t> elements, const std::string& what) {
  const auto damaged = [&](const std::string& how) {
    throw Error(ErrorKind::kCorrupt, what, how, "restore an older checkpoint");
  };
  const std::unique_ptr<ZSTD_DCtx, std::size_t (*)(ZSTD_DCtx*)> stream(ZSTD_createDCtx(), ZSTD_freeDCtx);
  if (stream == nullptr) throw Error(ErrorKind::kOutOfMemory, what, "no decompression context", "free memory");
  std::vector<std::uint8_t> planes(std::min(kBlockBytes, elements.size()));
  ZSTD_inBuffer in{frame.data(), frame.size(), 0};
  std::size_t left = 1;
  for (std::size_t at = 0; at < elements.size(); at += planes.size()) {
    ZSTD_outBuffer out{planes.data(), std::min(planes.size(), elements.size() - at), 0};
    while (out.pos < out.size) {
      const std::size_t before = in.pos + out.pos;
      left = ZSTD_decompressStream(stream.get(), &out, &in);
      if (ZSTD_isError(left)) damaged(ZSTD_getErrorName(left));
      if (in.pos + out.pos == before) damaged("a frame that ends early");
    }
    from_planes({planes.data(), out.size}, width, elements.data() + at);
  }
  while (left != 0) {  // the frame's checksum comes after its last byte
    ZSTD_outBuffer nothing{planes.data(), 0, 0};
    const std::size_t before = in.pos;
    left = ZSTD_decompressStream(stream.get(), &nothing, &in);
    if (ZSTD_isError(left)) damaged(ZSTD_getErrorName(left));
    if (left != 0 && in.pos == before) damaged("a frame of another length");
  }
  if (in.pos != in.size) damaged("bytes after its frame");
}

}  // namespace twinbench
