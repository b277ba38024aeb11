// What the program leaves behind: files, known to be writable before anything is measured, and standard output.
#pragma once

#include <string>

namespace twinbench {

// First thing in main. Standard streams that are closed become ones that refuse, so that no file of ours gets their
// numbers and what is printed lands in it. A pipe that nobody reads any more, or a file that may not grow further, is a
// failed write, not the end of the program.
void keep_standard_streams();

// Why not all that was printed arrived ("standard output: No space left on device"); empty where it did. Flushes.
std::string lost_output();

// Throws kInputOutput, naming the flag, where a file cannot be written. Makes missing folders. An empty path is none.
void require_writable(const std::string& flag, const std::string& path);

}  // namespace twinbench
