// libFuzzer target: the lines of the input as the words of a command line. What is accepted is sound.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "harness/command/arguments.h"
#include "harness/command/command_line.h"
#include "harness/fuzz/unless_refused.h"

namespace {

bool within(double value, double least, double most) { return value >= least && value <= most; }  // NaN is not

void require_sound(const twinbench::CommandLine& line) {
  const auto& options = line.options;
  const bool sound = !line.command.empty() && within(options.time_limit_s, 1e-6, 1e9) &&
                     within(options.minutes, 0, 1e6) && within(options.threads, 0, 1024) &&
                     within(static_cast<double>(options.memory_limit_mib), 0, twinbench::kMostMemory_MiB) &&
                     within(line.kernels.minutes, 0, 1e6) && within(line.configuration.memory_gb, 1e-3, 1e6) &&
                     within(static_cast<double>(line.null_comparisons), 1, 1e6) &&
                     within(line.session.null_cells, 1, 1000) && within(line.session.null_blocks, 0, 10000) &&
                     line.data.width >= 0 && line.data.rows >= -1;
  if (!sound) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twinbench;
  if (size > 4096) return 0;
  std::vector<std::string> words = {"twinbench"};
  words.emplace_back();
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n')
      words.emplace_back();
    else if (data[i] != '\0')
      words.back() += static_cast<char>(data[i]);
  }
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  unless_refused([&] {
    const CommandLine line = read_command_line(static_cast<int>(pointers.size()), pointers.data());
    if (!line.over) {
      require_sound(line);
    } else if (line.over->code == 0 ? line.over->printed.empty() : line.over->complained.empty()) {
      std::abort();
    } else {
      for (const unsigned char letter : line.over->complained)
        if (letter < ' ' && letter != '\n') std::abort();  // a terminal would obey it
    }
  });
  return 0;
}
