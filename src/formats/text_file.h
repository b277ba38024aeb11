// A whole file as text, of a size that one expects of pins, records and settings.
#pragma once

#include <string>
#include <vector>

namespace twinbench {

// Throws kInputOutput, naming `what` (a flag or field) and the path, where the file cannot be read or is no regular
// one: a FIFO would be waited for, a device read without end. kOutOfRange above 1 GiB.
std::string read_text_file(const std::string& path, const std::string& what);

// Its lines, without their ends; none where there is no such file. Not by std::getline, which ends quietly where memory
// or a part of the file is refused. Throws as above.
std::vector<std::string> lines_if_any(const std::string& path, const std::string& what);

}  // namespace twinbench
