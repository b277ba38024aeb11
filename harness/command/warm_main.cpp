// For tests that call the program many times: runs command lines one after another, each in a child of a process in
// which LibTorch is loaded and the components are known. That takes a quarter of a second less than a start.
//
// A line of standard input is a call: {"words": [...], "folder": where it runs, "out" and "err": files for what it
// prints}. Standard output gets two lines for each: the child's process and group, and what waitpid says of its end.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/command/program.h"
#include "harness/runner/waiting_threads.h"
#include "src/registry.h"

namespace {

// In the child. The words come as the system would give them, with a null behind the last.
int call(const nlohmann::json& asked) {
  const auto place = [](int number, const std::string& path, int flags) {
    const int file = open(path.c_str(), flags, 0600);
    return file >= 0 && dup2(file, number) == number && close(file) == 0;
  };
  const int fresh = O_WRONLY | O_CREAT | O_TRUNC;
  if (chdir(asked.at("folder").get<std::string>().c_str()) != 0 || !place(STDIN_FILENO, "/dev/null", O_RDONLY) ||
      !place(STDOUT_FILENO, asked.at("out").get<std::string>(), fresh) ||
      !place(STDERR_FILENO, asked.at("err").get<std::string>(), fresh)) {
    std::perror("twinbench_warm");
    return 127;
  }
  auto words = asked.at("words").get<std::vector<std::string>>();
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return twinbench::program(static_cast<int>(words.size()), pointers.data());
}

void before_libraries(int, char** words, char** environment) { twinbench::start_with_policy(words, environment); }

[[gnu::section(".preinit_array"), gnu::used]] void (*const first)(int, char**, char**) = before_libraries;

}  // namespace

int main() {
  (void)twinbench::all_cells();
  for (std::string line; std::getline(std::cin, line);) {
    const nlohmann::json asked = nlohmann::json::parse(line);
    const pid_t child = fork();
    if (child < 0) {
      std::perror("twinbench_warm");
      return 1;
    }
    if (child == 0) {
      setpgid(0, 0);
      std::exit(call(asked));
    }
    setpgid(child, child);  // in both processes: whoever comes first, the group exists before it is killed
    std::cout << child << std::endl;
    int status = 0;
    waitpid(child, &status, 0);
    std::cout << status << std::endl;
  }
  return 0;
}
