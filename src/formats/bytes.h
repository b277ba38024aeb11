// Byte ranges and little-endian reads: the one way the dataset readers touch untrusted bytes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace twinbench {

static_assert(std::endian::native == std::endian::little, "dataset files are little-endian and are mapped as they are");

using ByteSpan = std::span<const std::uint8_t>;

// Reads a T at any alignment. The caller has checked that sizeof(T) bytes are there.
template <typename T>
T load_little(const std::uint8_t* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
void store_little(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

// True where [offset, offset + length) lies inside `size` bytes, whatever the values: no overflow.
inline bool inside(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

inline std::string_view as_text(ByteSpan bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Behind the mark of three bytes that some editors put before UTF-8: it is no part of a text.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

inline ByteSpan as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace twinbench
