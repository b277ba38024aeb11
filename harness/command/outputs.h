// What the program leaves behind: files, known to be writable before anything is measured, and standard output.
#pragma once

#include <string>

namespace twinbench {

// For .preinit_array: runs before the constructors of the libraries. Those of LibTorch take 60 MiB, and throw or crash
// where that is refused; until main begins, either is said and ends the process with code 2.
void name_what_the_start_dies_of();

// First thing in main. Standard streams that are closed become ones that refuse, so that no file of ours gets their
// numbers and what is printed lands in it. A pipe that nobody reads any more, or a file that may not grow further, is a
// failed write, not the end of the program.
void keep_standard_streams();

// Then: an exception that nobody can catch is said, and ends this process with code 2; a child is aborted. An
// interruption, a termination, a hang-up and a used up limit of processor time remove what this process made for a
// while, and end it as they would have; while jobs run they are theirs (harness/runner/runner.h). A mapped
// file that somebody makes shorter ends the process with code 2, by name, and so does a thread that is refused.
void leave_nothing_behind();

// Why not all that was printed arrived ("standard output: No space left on device"); empty where it did, or where the
// reader of a pipe has gone, who has seen enough, as `head` has. Flushes.
std::string lost_output();

// A record's name for as long as a run takes, one at a time in a process; its children do not hold it. Throws
// kInputOutput where another run on this machine holds it, which would lose one of the two, and where the file there is
// no record: something else is not replaced.
class RecordName {
 public:
  RecordName(const std::string& flag, const std::string& path);
  ~RecordName();
  RecordName(const RecordName&) = delete;
  RecordName& operator=(const RecordName&) = delete;
};

// Throws kInputOutput, naming the flag, where a file cannot be written. Makes missing folders. An empty path is none.
void require_writable(const std::string& flag, const std::string& path);

}  // namespace twinbench
