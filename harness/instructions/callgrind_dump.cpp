// The format's cost lines: "<position> <instructions>" below the function they belong to.
#include "harness/instructions/callgrind_dump.h"

#include <cctype>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>

#include "src/common/error.h"

namespace twinbench {
namespace {

// "fn=(12) name", the name only the first time: "(12)", and whether it is the allocator's.
std::string identity(const std::string& line) { return line.substr(3, line.find(')') - 2); }
bool names_allocator(const std::string& line) {
  for (const char* name : {" malloc", " free", " calloc", " realloc", " _int_malloc", " _int_free", " _int_realloc",
                           " _int_memalign", " _mid_memalign.isra.0", " posix_memalign", " malloc_consolidate",
                           " unlink_chunk.isra.0", " sysmalloc", " systrim.isra.0", " tcache_init.part.0"})
    if (line.size() > std::string(name).size() && line.compare(line.find(')') + 1, std::string::npos, name) == 0)
      return true;
  return false;
}

}  // namespace

std::int64_t instructions_in(std::istream& dump) {
  std::int64_t instructions = 0;
  bool any = false, inclusive = false, left_out = false;
  std::set<std::string> allocator;
  dump.exceptions(std::ios::badbit);  // else a part that is refused would be no instructions
  for (std::string line; std::getline(dump, line);) {
    if (line.rfind("fn=", 0) == 0) {
      if (names_allocator(line)) allocator.insert(identity(line));
      left_out = allocator.count(identity(line)) > 0;
    } else if (line.rfind("cfn=", 0) == 0) {
      if (names_allocator(line.substr(1))) allocator.insert(identity(line.substr(1)));
    } else if (line.rfind("calls=", 0) == 0) {
      inclusive = true;  // the next line is what was spent below the call
    } else if (!line.empty() && (std::isdigit(line[0]) || line[0] == '+' || line[0] == '-' || line[0] == '*')) {
      any = true;
      if (!std::exchange(inclusive, false) && !left_out)
        instructions += std::strtoll(line.c_str() + line.rfind(' '), nullptr, 10);
    }
  }
  if (!any) throw Error(ErrorKind::kBadFile, "Callgrind's dump", "no cost line", "nothing was collected or written");
  return instructions;
}

}  // namespace twinbench
