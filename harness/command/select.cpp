// Which cells a command line means, and sizes given on it.
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <set>

#include "harness/command/arguments.h"
#include "harness/command/command.h"
#include "harness/gpu/probe.h"
#include "src/common/error.h"
#include "src/common/filter_pattern.h"
#include "src/common/nearest_name.h"

namespace twinbench {

bool cuda_is_present(bool forks_follow) {
  // Not LibTorch's own answer: it starts the driver, and children forked after that could not use the card.
  return c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA) &&
         (forks_follow ? gpu_status() : gpu_status_in_process()).usable();
}

void require_cuda(bool forks_follow) {
  if (cuda_is_present(forks_follow)) return;
  const bool built = c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA);
  throw Error(ErrorKind::kMissingDevice, "--device", "cuda",
              built ? (forks_follow ? gpu_status() : gpu_status_in_process()).reason()
                    : "this program was built without CUDA; use --device cpu, or build the preset gpu");
}

std::vector<Cell> matching_cells(const CommandOptions& options, bool others) {
  const FilterPattern wanted(options.filter);
  std::vector<Cell> cells;
  for (const auto& cell : all_cells())
    if ((options.device == "all" || options.device == to_string(cell.device)) && wanted.found_in(cell.name()))
      cells.push_back(cell);
  if (cells.empty() && !others) {
    (void)filter_cells(options.filter);  // throws, with the nearest names, where it matches none on any device
    throw Error(ErrorKind::kUnknownName, "--filter", options.filter,
                "it matches cells, but none on device " + options.device);
  }
  return cells;
}

std::vector<Cell> selected_cells(const CommandOptions& options, bool others) {
  if (options.device == "cuda") require_cuda(!options.in_process);
  return matching_cells(options, others);
}

void override_sizes(Case& input_case, const std::vector<std::string>& pairs) {
  constexpr std::uint64_t kLargestSize = std::uint64_t{1} << 31;
  std::set<std::string> given;
  for (const auto& pair : pairs) {
    const auto equals = pair.find('=');
    const auto name = pair.substr(0, equals);
    if (!given.insert(name).second) throw Error(ErrorKind::kBadArgument, "--size", pair, "give " + name + " once");
    std::vector<std::string> known;
    for (const auto& entry : input_case.sizes) known.push_back(entry.first);
    if (!input_case.sizes.count(name)) {
      std::string names;
      for (const auto& one : known) names += (names.empty() ? "" : ", ") + one;
      throw Error(ErrorKind::kUnknownName, "--size", pair,
                  "the case has the sizes " + names + did_you_mean(name, known));
    }
    const auto text = equals == std::string::npos ? std::string() : pair.substr(equals + 1);
    if (!not_whole(text, 0, kLargestSize).empty())
      throw Error(ErrorKind::kOutOfRange, "--size", pair, "give " + name + "=N with N from 0 to 2^31 in plain digits");
    input_case.sizes[name] = std::stoll(text);
  }
}

}  // namespace twinbench
