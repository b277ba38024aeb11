// Terminal detection, colours and the width of UTF-8 text.
#include "harness/terminal/style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace twinbench {
namespace {

constexpr char kEscape = '\033';

bool continues_code_point(char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) == 0x80u; }

}  // namespace

TerminalStyle terminal_style(int descriptor) {
  TerminalStyle style;
  const char* term = std::getenv("TERM");
  const bool capable = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  style.is_terminal = isatty(descriptor) == 1 && capable;
  const char* no_color = std::getenv("NO_COLOR");
  style.color = style.is_terminal && (no_color == nullptr || *no_color == '\0');
  winsize size{};
  if (style.is_terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
  return style;
}

std::string painted(std::string_view text, Color color, bool enabled) {
  if (!enabled) return std::string(text);
  const char* code = "0";
  switch (color) {
    case Color::kRed: code = "31"; break;
    case Color::kGreen: code = "32"; break;
    case Color::kYellow: code = "33"; break;
    case Color::kDim: code = "2"; break;
  }
  return std::string("\033[") + code + "m" + std::string(text) + "\033[0m";
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == kEscape) {
      while (i < text.size() && text[i] != 'm' && text[i] != 'K') ++i;
    } else if (!continues_code_point(text[i])) {
      ++columns;
    }
  }
  return columns;
}

std::string clipped(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size() && shown < columns; ++shown) {
    ++end;
    while (end < text.size() && continues_code_point(text[end])) ++end;
  }
  return std::string(text.substr(0, end));
}

}  // namespace twinbench
