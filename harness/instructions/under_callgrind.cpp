// Starting again under Valgrind, and what names the machine that counts.
#include "harness/instructions/under_callgrind.h"

#include <gnu/libc-version.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <torch/version.h>
#include <unistd.h>
#include <valgrind/valgrind.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <utility>
#include <vector>

#include "harness/ledger/ledger.h"
#include "harness/runner/interruption_watch.h"
#include "src/common/error.h"
#include "src/formats/file_io.h"

namespace twinbench {
namespace {

constexpr int kWait_ms = 20;
constexpr char kFolder[] = "TWINBENCH_CALLGRIND_FOLDER";

// Valgrind's own processor, one and the same on machines of every vendor: how wide its vectors are follows from the
// machine, and nothing else does.
std::string processor() {
  return __builtin_cpu_supports("avx2") ? "AVX2" : __builtin_cpu_supports("avx") ? "AVX" : "SSE";
}

}  // namespace

int run_under_callgrind(char** arguments) {
  const TemporaryDirectory folder;
  setenv(kFolder, folder.path().c_str(), 1);
  const std::string dumps = "--callgrind-out-file=" + folder.path() + "/%p";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<std::string> words = {
      "valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no", "--collect-atstart=no", dumps, program};
  std::vector<char*> command;
  for (auto& word : words) command.push_back(word.data());
  for (char** argument = arguments + 1; *argument; ++argument) command.push_back(*argument);
  command.push_back(nullptr);
  // Of a cell that crashes Valgrind would leave a core file here.
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "valgrind", nullptr, nullptr, command.data(), environ);
  if (failed != 0)
    throw Error(ErrorKind::kMissingDevice, "valgrind", std::strerror(failed),
                "ci/setup installs the Debian package valgrind, which counts instructions");
  // The one that counts ends in its own time and says what it has. Ctrl-C reaches both, and then it is told twice.
  int status = 0, told = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (interrupted() && std::exchange(told, interruption()) == 0) kill(child, told);
    poll(nullptr, 0, kWait_ms);
  }
  unsetenv(kFolder);
  if (WIFSIGNALED(status) && interrupted()) {  // before it could note a signal
    std::cerr << "interrupted: nothing was counted\n";
    return kExitInconclusive;
  }
  if (WIFSIGNALED(status))
    throw Error(ErrorKind::kInternal, "valgrind", "signal " + std::to_string(WTERMSIG(status)),
                "it died; run the command again with one cell (--filter)");
  return WEXITSTATUS(status);
}

std::string callgrind_folder() {
  const char* folder = std::getenv(kFolder);
  return folder ? folder : "";
}

std::string counting_machine() {
  return processor() + ", LibTorch " TORCH_VERSION ", g++ " __VERSION__ ", glibc " + gnu_get_libc_version() +
         ", valgrind " + std::to_string(__VALGRIND_MAJOR__) + "." + std::to_string(__VALGRIND_MINOR__);
}

}  // namespace twinbench
