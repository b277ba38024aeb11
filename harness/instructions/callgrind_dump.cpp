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

constexpr std::array<std::string_view, 15> kAllocator = {"malloc",
                                                         "free",
                                                         "calloc",
                                                         "realloc",
                                                         "_int_malloc",
                                                         "_int_free",
                                                         "_int_realloc",
                                                         "_int_memalign",
                                                         "_mid_memalign.isra.0",
                                                         "posix_memalign",
                                                         "malloc_consolidate",
                                                         "unlink_chunk.isra.0",
                                                         "sysmalloc",
                                                         "systrim.isra.0",
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

// Objects by number, too: "(3) /path/program". Which of them are the program, which the C library's, where loops copy
// and take sines.
class Objects {
 public:
  enum class Kind : char { kOther, kProgram, kC };

  explicit Objects(std::string_view program) : program_(program) {}

  Kind of(std::string_view object) {
    const auto number = static_cast<std::size_t>(number_in(object.substr(1)));
    if (number >= known_.size()) known_.resize(2 * number + 1, Kind::kOther);
    const auto space = object.find(' ');
    if (space != std::string_view::npos) known_[number] = kind_of(object.substr(space + 1));
    return known_[number];
  }

 private:
  Kind kind_of(std::string_view path) const {
    if (path == program_) return Kind::kProgram;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const bool c = name.substr(0, 8) == "libc.so." || name.substr(0, 8) == "libm.so.";
    return c ? Kind::kC : Kind::kOther;
  }

  std::string_view program_;
  std::vector<Kind> known_;
};

bool is_cost(std::string_view line) {
  const char first = line.empty() ? '\0' : line.front();
  return (first >= '0' && first <= '9') || first == '+' || first == '-' || first == '*';
}

bool starts(std::string_view line, std::string_view with) { return line.substr(0, with.size()) == with; }

}  // namespace

DumpedInstructions instructions_in(std::string_view dump, std::string_view program) {
  DumpedInstructions sum;
  bool any = false, below_a_call = false, in_allocator = false, of_allocator = false;
  Allocator allocator;
  Objects objects(program);
  auto object = Objects::Kind::kOther, callee = object;
  while (!dump.empty()) {
    const std::string_view line = dump.substr(0, dump.find('\n'));
    dump.remove_prefix(std::min(line.size() + 1, dump.size()));
    if (is_cost(line)) {
      any = true;
      const std::int64_t cost = number_in(line.substr(line.rfind(' ') + 1));
      const bool in_program = object == Objects::Kind::kProgram;
      if (std::exchange(below_a_call, false)) {
        if (in_program && callee == Objects::Kind::kC && !of_allocator) sum.own += cost;
        callee = object;
      } else if (!in_allocator) {
        sum.total += cost;
        if (in_program) sum.own += cost;
      }
    } else if (starts(line, "ob=")) {
      callee = object = objects.of(line.substr(3));
    } else if (starts(line, "cob=")) {
      callee = objects.of(line.substr(4));
    } else if (starts(line, "fn=")) {
      in_allocator = allocator.has(line.substr(3));
    } else if (starts(line, "cfn=")) {
      of_allocator = allocator.has(line.substr(4));
    } else if (starts(line, "calls=")) {
      below_a_call = true;  // the next line is what was spent there
    }
  }
  if (!any) throw Error(ErrorKind::kBadFile, "Callgrind's dump", "no cost line", "nothing was collected or written");
  return sum;
}

}  // namespace twinbench
