// The UTF-8 check (Unicode 15, table 3-7).
#include "src/formats/text_table.h"

#include <cstring>

namespace twinbench {

bool is_utf8(std::string_view text) {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = at + text.size();
  while (at < end) {
    std::uint64_t eight;
    if (end - at >= 8 && (std::memcpy(&eight, at, 8), (eight & 0x8080808080808080u) == 0)) {
      at += 8;  // plain ASCII, by far the common case
      continue;
    }
    const unsigned char lead = *at++;
    if (lead < 0x80) continue;
    int following;
    unsigned char low = 0x80, high = 0xBF;  // limits of the first following byte
    if (lead >= 0xC2 && lead <= 0xDF) {
      following = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      following = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      following = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    if (end - at < following || *at < low || *at > high) return false;
    ++at;
    for (int i = 1; i < following; ++i, ++at) {
      if ((*at & 0xC0) != 0x80) return false;
    }
  }
  return true;
}

}  // namespace twinbench
