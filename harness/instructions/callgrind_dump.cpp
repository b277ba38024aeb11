// The format's cost lines: "<position> <instructions>" below the function they belong to. Read under Valgrind, after
// every counted run: a slow reader would take longer than most of the runs.
#include "harness/instructions/callgrind_dump.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/common/error.h"

namespace twinbench {
namespace {

// Of the C library, without what compilers and versions add to a name: how long the allocator searches depends on all
// that the process did before, how often a thread waits for another one on which of them comes first.
constexpr std::array<std::string_view, 31> kLeftOut = {"malloc",
                                                       "free",
                                                       "calloc",
                                                       "realloc",
                                                       "_int_malloc",
                                                       "_int_free",
                                                       "_int_realloc",
                                                       "_int_memalign",
                                                       "_mid_memalign",
                                                       "posix_memalign",
                                                       "malloc_consolidate",
                                                       "unlink_chunk",
                                                       "sysmalloc",
                                                       "systrim",
                                                       "tcache_init",
                                                       "alloc_perturb",
                                                       "pthread_cond_wait",
                                                       "pthread_cond_broadcast",
                                                       "pthread_cond_signal",
                                                       "__condvar_confirm_wakeup",
                                                       "__condvar_dec_grefs",
                                                       "__futex_abstimed_wait_cancelable64",
                                                       "__futex_abstimed_wait_common",
                                                       "__lll_lock_wait",
                                                       "__lll_lock_wake",
                                                       "__pthread_clockjoin_ex",
                                                       "__pthread_disable_asynccancel",
                                                       "__pthread_enable_asynccancel",
                                                       "__pthread_mutex_cond_lock",
                                                       "_pthread_cleanup_pop",
                                                       "_pthread_cleanup_push"};

std::int64_t number_in(std::string_view digits) {
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// Which of them are the program, which the C library, where loops copy and take sines.
enum class Object : char { kOther, kProgram, kC };

Object object_at(std::string_view path, std::string_view program) {
  if (path == program) return Object::kProgram;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libc.so.") || name.starts_with("libm.so.") ? Object::kC : Object::kOther;
}

char is_left_out(std::string_view function) {
  return std::ranges::find(kLeftOut, function.substr(0, function.find_first_of(".@"))) != kLeftOut.end();
}

// What names mean, by the number that stands for a name once it was given: "(12) name", later "(12)".
template <class Meaning, class Means>
class Named {
 public:
  explicit Named(Means means) : means_(std::move(means)) {}

  Meaning operator()(std::string_view named) {
    const auto number = static_cast<std::size_t>(number_in(named.substr(1)));
    if (number >= known_.size()) known_.resize(2 * number + 1);
    const auto space = named.find(' ');
    if (space != std::string_view::npos) known_[number] = means_(named.substr(space + 1));
    return known_[number];
  }

 private:
  Means means_;
  std::vector<Meaning> known_;
};
template <class Means>
Named(Means) -> Named<std::invoke_result_t<Means, std::string_view>, Means>;

bool is_cost(std::string_view line) {
  const char first = line.empty() ? '\0' : line.front();
  return (first >= '0' && first <= '9') || first == '+' || first == '-' || first == '*';
}

}  // namespace

DumpedInstructions instructions_in(std::string_view dump, std::string_view program) {
  DumpedInstructions sum;
  bool any = false, below_a_call = false, is_out = false, callee_is_out = false;
  Named left_out(is_left_out);
  Named objects([program](std::string_view path) { return object_at(path, program); });
  Object object = Object::kOther, callee = object;
  while (!dump.empty()) {
    const std::string_view line = dump.substr(0, dump.find('\n'));
    dump.remove_prefix(std::min(line.size() + 1, dump.size()));
    if (is_cost(line)) {
      any = true;
      const std::int64_t cost = number_in(line.substr(line.rfind(' ') + 1));
      const bool in_program = object == Object::kProgram;
      if (std::exchange(below_a_call, false)) {
        if (in_program && callee == Object::kC && !callee_is_out) sum.own += cost;
        callee = object;
      } else if (!is_out) {
        sum.total += cost;
        if (in_program) sum.own += cost;
      }
    } else if (line.starts_with("ob=")) {
      callee = object = objects(line.substr(3));
    } else if (line.starts_with("cob=")) {
      callee = objects(line.substr(4));
    } else if (line.starts_with("fn=")) {
      is_out = left_out(line.substr(3));
    } else if (line.starts_with("cfn=")) {
      callee_is_out = left_out(line.substr(4));
    } else if (line.starts_with("calls=")) {
      below_a_call = true;  // the next line is what was spent there
    }
  }
  if (!any) throw Error(ErrorKind::kBadFile, "Callgrind's dump", "no cost line", "nothing was collected or written");
  return sum;
}

}  // namespace twinbench
