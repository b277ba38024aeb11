// What an exception says to a user: one line. Where memory was refused it says how much was asked for, what the limit
// is and what helps, whatever the allocator's own words were.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "src/common/error.h"

namespace twinbench {

// Error(kOutOfMemory) where `what`, the text of any exception, speaks of an allocation that was refused on the host or
// on a card: LibTorch, CUDA and the standard library throw types of their own, so that the wording is all there is.
std::optional<Error> refused_memory_in(std::string_view what);

// Error(kInputOutput) where the system refused something else: of a std::system_error, and of LibTorch's words for it.
std::optional<Error> refused_by_system(const std::exception& error);

// What to say where a thread was refused with `error` a moment ago: kOutOfMemory where its stack finds no room, which
// the system's own number does not tell from a limit on processes; else kInputOutput.
Error refused_thread(int error);

// An Error's own line; that of refused_memory_in(); a CUDA error's name with its remedy; else the first line.
std::string told(const std::exception& error);

}  // namespace twinbench
