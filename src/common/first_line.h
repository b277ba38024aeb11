// The first line of a message: what LibTorch throws carries a page of stack trace below it.
#pragma once

#include <string>
#include <string_view>

namespace twinbench {

inline std::string first_line(std::string_view message) { return std::string(message.substr(0, message.find('\n'))); }

}  // namespace twinbench
