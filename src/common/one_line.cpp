// Decoding UTF-8 and replacing what is not to be shown.
#include "src/common/one_line.h"

#include <cstdint>

namespace twinbench {
namespace {

constexpr char kUnknown[] = "\xEF\xBF\xBD";  // U+FFFD

// The code point that begins at `at` and its length; 0 bytes where there is none.
struct Decoded {
  std::uint32_t point = 0;
  std::size_t bytes = 0;
};

Decoded decoded(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + bytes > text.size()) return {};
  std::uint32_t point = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0u) != 0x80u) return {};
    point = point << 6 | (byte(at + i) & 0x3Fu);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool legal = point >= kLeast[bytes] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
  return legal ? Decoded{point, bytes} : Decoded{};
}

bool breaks_lines(std::uint32_t point) {
  return (point >= 0x09 && point <= 0x0D) || (point >= 0x1C && point <= 0x1F) || point == 0x85 || point == 0x2028 ||
         point == 0x2029;
}

bool hidden(std::uint32_t point) {
  const bool control = point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0xAD;
  const bool direction = (point >= 0x200B && point <= 0x200F) || (point >= 0x202A && point <= 0x202E) ||
                         (point >= 0x2060 && point <= 0x206F) || point == 0xFEFF;
  return control || direction || (point >= 0xFFF0 && point <= 0xFFFB) || point >= 0xE0000;
}

// The first or last so many bytes, without half a character at the cut.
std::string_view cut(std::string_view text, std::size_t from, std::size_t to) {
  const auto inside = [&](std::size_t at) { return at < text.size() && (text[at] & 0xC0) == 0x80; };
  while (inside(from)) ++from;
  while (to > from && inside(to)) --to;
  return text.substr(from, to - from);
}

}  // namespace

std::string one_line(std::string_view text, std::size_t most) {
  if (text.size() > most) {
    const std::size_t half = most / 2;
    return one_line(std::string(cut(text, 0, half)) + "... (" + std::to_string(text.size()) + " bytes) ..." +
                        std::string(cut(text, text.size() - half, text.size())),
                    most + 64);
  }
  std::string line;
  line.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [point, bytes] = decoded(text, at);
    if (bytes == 0)
      line += kUnknown;
    else if (breaks_lines(point))
      line += ' ';
    else if (hidden(point))
      line += kUnknown;
    else
      line += text.substr(at, bytes);
    at += bytes == 0 ? 1 : bytes;
  }
  for (std::size_t at = 0; (at = line.find("##[", at)) != std::string::npos; at += 3) line.insert(at + 1, " ");
  const std::size_t first = line.find_first_not_of(' ');
  if (first != std::string::npos && line.compare(first, 2, "::") == 0) line.insert(first + 1, " ");
  return line;
}

}  // namespace twinbench
