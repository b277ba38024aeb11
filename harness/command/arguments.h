// Values of the command line that their type alone would take: what is wrong with a text, in words.
#pragma once

#include <cstdint>
#include <string>

namespace twinbench {

// Empty where `text` is a whole number from `least` to `most` in plain digits; else what is wrong and what to give.
// Neither signs, points nor numbers that would wrap around pass.
std::string not_whole(const std::string& text, std::uint64_t least, std::uint64_t most);

constexpr std::uint64_t kMostMemory_MiB = std::uint64_t{1} << 24;  // 16 TiB: more overflows what it is counted in

// Throws kInputOutput where the file of pins that a command compares with is not there, and the command is not to write
// it: in another folder than the repository's root, every cell would be one that nobody has pinned.
void require_pins(const std::string& path, bool pin);

}  // namespace twinbench
