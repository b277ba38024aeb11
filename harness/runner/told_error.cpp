// Recognising refused allocations by their wording.
#include "harness/runner/told_error.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "harness/gpu/status.h"
#include "harness/runner/memory_use.h"
#include "src/common/first_line.h"
#include "src/common/one_line.h"

namespace twinbench {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// "20.00 GiB" of "Tried to allocate 20.00 GiB. GPU 0 has", "4096 bytes" of "you tried to allocate 4096 bytes.".
std::string asked_for(std::string_view what) {
  constexpr std::string_view kWords = "ried to allocate ";
  const auto found = what.find(kWords);
  if (found == std::string_view::npos) return "";
  const std::string_view rest = what.substr(found + kWords.size());
  const auto number = std::find_if_not(rest.begin(), rest.end(),
                                       [](unsigned char letter) { return std::isdigit(letter) || letter == '.'; });
  if (number == rest.begin() || number == rest.end() || *number != ' ') return "";
  const auto unit = std::find_if_not(number + 1, rest.end(), [](unsigned char letter) { return std::isalpha(letter); });
  return std::string(rest.begin(), unit);
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string host_remedy() {
  constexpr const char* kLess = "take a smaller case or --size, or fewer --threads";
  if (const auto limit = memory_limit_of_this_process(); limit > 0)
    return "the limit is " + mebibytes(limit) + "; --memory-limit gives another, or " + kLess;
  rlimit data{};
  if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY)
    return "the limit on this process's data is " + mebibytes(data.rlim_cur) + "; raise it (ulimit -d), or " + kLess;
  return "the machine has " + mebibytes(available_memory()) + " left; free some, or " + kLess;
}

}  // namespace

std::optional<Error> refused_memory_in(std::string_view what) {
  const std::string asked = asked_for(what);
  const std::string value = asked.empty() ? "more than there is" : asked + " more";
  if (const auto failure = cuda_failure_in(what); failure && failure->status == GpuStatus::kOutOfMemory)
    return Error(ErrorKind::kOutOfMemory, "memory of the card", value,
                 "CUDA_ERROR(" + failure->name + "): " + meaning_of(failure->status) + "; " +
                     remedy_of(failure->status) + " (" + first_line(what) + ")");
  for (const std::string_view phrase : {"out of memory", "can't allocate memory", "not enough memory", "bad_alloc"})
    if (contains(what, phrase)) return Error(ErrorKind::kOutOfMemory, "host memory", value, host_remedy());
  return std::nullopt;
}

std::optional<Error> refused_by_system(const std::exception& error) {
  const auto refused = [&] {
    return Error(ErrorKind::kInputOutput, "system", one_line(first_line(error.what()), 1024),
                 "it refused what a library asked for; free descriptors, disk or processes");
  };
  if (const auto* const coded = dynamic_cast<const std::system_error*>(&error))
    if (coded->code().category() == std::system_category() || coded->code().category() == std::generic_category())
      return refused();
  for (const std::string_view phrase : {"/dev/urandom", "Too many open files", "No space left on device",
                                        "Input/output error", "Resource temporarily unavailable"})
    if (contains(error.what(), phrase)) return refused();
  return std::nullopt;
}

Error refused_thread(int error) {
  pthread_attr_t usual;
  std::size_t stack = 0;
  if (pthread_getattr_default_np(&usual) == 0) {
    pthread_attr_getstacksize(&usual, &stack);
    pthread_attr_destroy(&usual);
  }
  void* const room = mmap(nullptr, stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED && errno == ENOMEM) {
    lift_memory_limit();
    return Error(ErrorKind::kOutOfMemory, "host memory", mebibytes(stack) + " more for a thread's stack",
                 host_remedy());
  }
  if (room != MAP_FAILED) munmap(room, stack);
  return Error(
      ErrorKind::kInputOutput, "threads", std::strerror(error),
      "the system refused one more: raise the limit on processes (ulimit -u; pids.max of a container), or give "
      "--threads 1");
}

std::string told(const std::exception& error) {
  if (dynamic_cast<const Error*>(&error)) return error.what();
  if (const auto memory = refused_memory_in(error.what())) return memory->what();
  if (const auto system = refused_by_system(error)) return system->what();
  const std::string line = one_line(first_line(error.what()), 4096);
  const auto failure = cuda_failure_in(error.what());
  return failure ? failure->text() + " (" + line + ")" : line;
}

}  // namespace twinbench
