// A mapped file that another process makes shorter: reading beyond its new end is a bus error, which ends the process
// by a message that names the file, where it would be a crash.
#pragma once

#include <cstddef>
#include <string>

namespace twinbench {

// Of a mapping; -1 where all 64 places are taken. The path may be cut.
int guard_mapping(const void* data, std::size_t bytes, const std::string& path) noexcept;
void forget_mapping(int guard) noexcept;

// From now on such a bus error writes "twinbench: input_output: ..." to standard error, removes temporary files and
// ends the process with that code. Any other one does what it did before.
void end_on_shortened_files(int exit_code);

}  // namespace twinbench
