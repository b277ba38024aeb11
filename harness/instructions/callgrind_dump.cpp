// The format's cost lines: "<position> <instructions>" below the function they belong to. Read under Valgrind, after
// every counted run: a slow reader would take longer than most of the runs.
#include "harness/instructions/callgrind_dump.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::array<std::string_view, 15> kAllocator = {
    "malloc",       "free",          "calloc",          "realloc",
    "_int_malloc",  "_int_free",     "_int_realloc",    "_int_memalign",
    "_mid_memalign.isra.0",          "posix_memalign",  "malloc_consolidate",
    "unlink_chunk.isra.0",           "sysmalloc",       "systrim.isra.0",
    "tcache_init.part.0"};

std::int64_t number_in(std::string_view digits) {
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// Functions by the number that stands for the name once it was given: "(12) name", later "(12)".
class Allocator {
 public:
  bool has(std::string_view function) {
    const auto number = static_cast<std::size_t>(number_in(function.substr(1)));
    if (number >= known_.size()) known_.resize(2 * number + 1);
    const auto space = function.find(' ');
    if (space != std::string_view::npos)
      known_[number] = std::find(kAllocator.begin(), kAllocator.end(), function.substr(space + 1)) != kAllocator.end();
    return known_[number];
  }

 private:
  std::vector<char> known_;
};

bool is_cost(std::string_view line) {
  const char first = line.empty() ? '\0' : line.front();
  return (first >= '0' && first <= '9') || first == '+' || first == '-' || first == '*';
}

}  // namespace

std::int64_t instructions_in(std::string_view dump) {
  std::int64_t instructions = 0;
  bool any = false, inclusive = false, left_out = false;
  Allocator allocator;
  while (!dump.empty()) {
    const std::string_view line = dump.substr(0, dump.find('\n'));
    dump.remove_prefix(std::min(line.size() + 1, dump.size()));
    if (is_cost(line)) {
      any = true;
      if (!std::exchange(inclusive, false) && !left_out) instructions += number_in(line.substr(line.rfind(' ') + 1));
    } else if (line.substr(0, 3) == "fn=") {
      left_out = allocator.has(line.substr(3));
    } else if (line.substr(0, 4) == "cfn=") {
      allocator.has(line.substr(4));
    } else if (line.substr(0, 6) == "calls=") {
      inclusive = true;  // the next line is what was spent below the call
    }
  }
  if (!any) throw Error(ErrorKind::kBadFile, "Callgrind's dump", "no cost line", "nothing was collected or written");
  return instructions;
}

}  // namespace twinbench
