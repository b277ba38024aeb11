// Closed streams, closed pipes, full disks: found, and said.
#include "harness/command/outputs.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include "harness/instructions/under_callgrind.h"
#include "harness/ledger/ledger.h"
#include "harness/runner/interruption_watch.h"
#include "harness/runner/share.h"
#include "harness/runner/told_error.h"
#include "src/common/error.h"
#include "src/common/refused_thread.h"
#include "src/formats/file_io.h"
#include "src/formats/mapping_guard.h"
#include "src/formats/temporary_paths.h"

namespace twinbench {
namespace {

// Handlers have no arguments of their own.
pid_t program_process = 0;
bool starting = false;
struct sigaction crash_before_start {};

// A record's name is the program's, not its children's: one that is left over for a moment when the program is killed
// would still refuse the name to the next run.
int record_name = -1;
void let_go_of_record_name() {
  if (record_name >= 0) ::close(record_name);
  record_name = -1;
}

// Where memory is refused inside a destructor (nlohmann's takes some) or inside a constructor of LibTorch's globals,
// nothing can be caught. A child that comes to that is aborted, and so its parent's row.
void end_by_name() {
  if (::getpid() != program_process || !std::current_exception()) ::raise(SIGABRT);
  try {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "twinbench: %s\n", told(error).c_str());
    }
  } catch (const std::bad_alloc&) {  // not even the words found room
    std::fputs("twinbench: out_of_memory: host memory is 'more than there is': free some; see ulimit -d\n", stderr);
  } catch (...) {
    std::fputs("twinbench: internal: an exception that nobody could catch\n", stderr);
  }
  remove_temporary_paths();
  ::_exit(kExitUsage);
}

void end_crashed_start(int) {
  constexpr char kTold[] =
      "twinbench: out_of_memory: a library crashed while it was loaded, most likely for memory that it was refused: "
      "free some; see ulimit -d and ulimit -v\n";
  const auto written = ::write(STDERR_FILENO, kTold, sizeof kTold - 1);
  static_cast<void>(written);  // where nobody listens, the code says it
  ::_exit(kExitUsage);
}

void end_interrupted_start(int) {
  constexpr char kTold[] = "interrupted: nothing was measured\n";
  const auto written = ::write(STDERR_FILENO, kTold, sizeof kTold - 1);
  static_cast<void>(written);  // as above
  ::_exit(kExitInconclusive);
}

void end_by_name_what_nobody_catches() {
  program_process = ::getpid();
  std::set_terminate(end_by_name);
}

}  // namespace

void name_what_the_start_dies_of() {
  end_by_name_what_nobody_catches();
  char too_short[1];                                           // one that is there is too long for it
  if (::getcwd(too_short, 1) == nullptr && errno == ENOENT) {  // MKL asks for it, and would end the process by itself
    std::fputs("twinbench: input_output: the working directory was removed: change to one that is there\n", stderr);
    ::_exit(kExitUsage);
  }
  struct sigaction action {};
  action.sa_handler = end_crashed_start;
  sigemptyset(&action.sa_mask);
  starting = ::sigaction(SIGSEGV, &action, &crash_before_start) == 0;
  action.sa_handler = end_interrupted_start;
  for (const int number : kInterruptions) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);  // as under nohup
  }
}

void keep_standard_streams() {
  if (starting) ::sigaction(SIGSEGV, &crash_before_start, nullptr);  // from here on a crash is one of ours
  starting = false;
  // Opened for reading, standard output and error refuse what is written; input, opened for writing, what is read.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest free number is this one
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files, likewise
}

void leave_nothing_behind() {
  end_by_name_what_nobody_catches();
  for (const int number : kInterruptions) {
    struct sigaction before {
    }, action{};
    action.sa_handler = [](int signal) {
      remove_temporary_paths();
      std::signal(signal, SIG_DFL);
      ::raise(signal);
    };
    sigemptyset(&action.sa_mask);
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);  // as under nohup
  }
  end_on_shortened_files(kExitUsage);
  when_thread_is_refused = [](int error) {
    std::fprintf(stderr, "twinbench: %s\n", refused_thread(error).what());
    remove_temporary_paths();
    ::_exit(kExitUsage);
  };
}

std::string lost_output() {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  pollfd reader{STDOUT_FILENO, 0, 0};
  if (const int error = errno; ::poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0)
    return "";
  else
    errno = error;
  if (std::cout.good() && std::ferror(stdout) == 0) return "";
  return std::string("standard output: ") + (errno != 0 ? std::strerror(errno) : "an earlier write failed") +
         ": what was printed is not complete; give it a place that takes it";
}

RecordName::RecordName(const std::string& flag, const std::string& path) {
  if (path.empty() || !callgrind_folder().empty()) return;  // under Callgrind the process that started it holds it
  if (struct stat status{}; ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const MappedFile file(path);
    const std::string_view text = as_text(file.bytes());
    if (!text.starts_with('{') || text.find("\"twinbench\"") == std::string_view::npos)
      throw Error(ErrorKind::kInputOutput, flag, path, "there is a file that is no record: give another name");
  }
  // A name that no file has: the system lets go of it with the process, however that ends.
  char real[PATH_MAX];
  const bool there = ::realpath(path.c_str(), real) != nullptr;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool folder_there = there || ::realpath(folder.c_str(), real) != nullptr;
  const std::string name = there ? real : (folder_there ? real : folder) + ("/" + path.substr(slash + 1));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "twinbench-record-%016llx",
                                   static_cast<unsigned long long>(name_hash(name)));
  const int held = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  if (held >= 0 && ::bind(held, reinterpret_cast<const sockaddr*>(&address), size) != 0 && errno == EADDRINUSE) {
    ::close(held);
    throw Error(ErrorKind::kInputOutput, flag, path, "another run is to write it: give another name, or let that end");
  }
  static const int registered = ::pthread_atfork(nullptr, nullptr, let_go_of_record_name);
  static_cast<void>(registered);  // refused for want of memory: a child that is left over refuses the name for a moment
  record_name = held;
}

RecordName::~RecordName() { let_go_of_record_name(); }

void require_writable(const std::string& flag, const std::string& path) {
  if (path.empty()) return;
  try {
    make_directory_of(path);
    check_writable(path);
  } catch (const Error& error) {
    throw Error(ErrorKind::kInputOutput, flag, path, error.what());
  }
}

}  // namespace twinbench
