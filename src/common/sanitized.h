// For tests that plant what a sanitizer ends the process for, or whose signals and memory it takes over.
#pragma once

namespace twinbench {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace twinbench
