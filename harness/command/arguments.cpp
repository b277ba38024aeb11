// Reading digits, and looking for files.
#include "harness/command/arguments.h"

#include <charconv>
#include <filesystem>

#include "src/common/error.h"

namespace twinbench {

std::string not_whole(const std::string& text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = failure == std::errc() && end == text.data() + text.size() && value >= least && value <= most;
  if (whole && (text.size() == 1 || text.front() != '0')) return "";  // whoever converts it reads 010 as eight
  return "'" + text + "' is no whole number from " + std::to_string(least) + " to " + std::to_string(most);
}

void require_pins(const std::string& path, bool pin) {
  if (!pin && !std::filesystem::exists(path))
    throw Error(ErrorKind::kInputOutput, "--pins", path,
                "there is no such file: run from the repository's root, or write one with --pin");
}

}  // namespace twinbench
