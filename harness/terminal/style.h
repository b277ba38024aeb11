// What a stream can show: whether it is a terminal, how wide it is, and whether colour is welcome.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twinbench {

struct TerminalStyle {
  bool is_terminal = false;  // lines may be rewritten in place
  bool color = false;
  std::size_t width = 100;  // columns
};

// Of a file descriptor. Colour is off where NO_COLOR is set and not empty, where TERM is "dumb" or unset, and in logs.
TerminalStyle terminal_style(int descriptor);

enum class Color { kRed, kGreen, kYellow, kDim };

// `text` in that colour, or unchanged.
std::string painted(std::string_view text, Color color, bool enabled);

// Columns that UTF-8 text takes: its code points, escape sequences left out. Wide East Asian letters count as one.
std::size_t display_width(std::string_view text);

// The longest beginning of UTF-8 text without escape sequences that fits into `columns`.
std::string clipped(std::string_view text, std::size_t columns);

}  // namespace twinbench
