// Closed streams, closed pipes, full disks: found, and said.
#include "harness/command/outputs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

#include "harness/ledger/ledger.h"
#include "harness/runner/told_error.h"
#include "src/common/error.h"
#include "src/common/refused_thread.h"
#include "src/formats/file_io.h"
#include "src/formats/mapping_guard.h"
#include "src/formats/temporary_paths.h"

namespace twinbench {

void keep_standard_streams() {
  // Opened for reading, standard output and error refuse what is written; input, opened for writing, what is read.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // the lowest free number is this one
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files, likewise
}

void leave_nothing_behind() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGXCPU}) {
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
  // Where memory is refused inside a destructor (nlohmann's takes some), nothing can be caught any more. A child that
  // comes to that is aborted, and so its parent's row.
  static const pid_t parent = ::getpid();
  std::set_terminate([] {
    if (::getpid() != parent || !std::current_exception()) ::raise(SIGABRT);
    std::string what = "an exception that nobody could catch";
    try {
      std::rethrow_exception(std::current_exception());
    } catch (const std::exception& error) {
      what = told(error);
    } catch (...) {
    }
    std::fprintf(stderr, "twinbench: %s\n", what.c_str());
    remove_temporary_paths();
    ::_exit(kExitUsage);
  });
  when_thread_is_refused = [](int error) {
    std::fprintf(stderr, "twinbench: %s\n", refused_thread_text(error).c_str());
    remove_temporary_paths();
    ::_exit(kExitUsage);
  };
}

std::string lost_output() {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  if (std::cout.good() && std::ferror(stdout) == 0) return "";
  return std::string("standard output: ") + (errno != 0 ? std::strerror(errno) : "an earlier write failed") +
         ": what was printed is not complete; give it a place that takes it";
}

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
