// Text from outside, made harmless for a terminal and a log: one line, of bounded length, that nothing obeys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace twinbench {

// The text in one line of valid UTF-8: what breaks a line is a blank, other control characters, bidirectional overrides
// and invalid bytes are U+FFFD, and neither "##[error]" nor "::error::" at its beginning is left as a log would obey
// it. Longer than `most` bytes: the middle is cut out, and how many bytes it had is said.
std::string one_line(std::string_view text, std::size_t most = std::size_t{1} << 16);

}  // namespace twinbench
