// One run of the CUDA path on the host, counted, and the times that a card is modelled to take for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/model/kernel_figures.h"
#include "harness/simt/counting/launch_counts.h"
#include "src/common/choice.h"
#include "src/registry.h"

namespace twinbench {

struct CountedCell {
  std::string name;
  bool timed = false;
  std::vector<kernels::simt::LaunchCounts> launches;
  std::vector<std::string> products;  // of the library: "mm 64x65x192 bf16"
  Cost cost;
  Dtype dtype = Dtype::kFp32;
  std::vector<Choice> choices;  // that the set-up made
};

// Every cell of device simt that the pattern matches, those included that are too large to be executed whole.
std::vector<Cell> kernel_cells(const std::string& pattern);

// The component whose kernel it is ("energy_flow::losses::Word": "energy_flow.losses"); empty for one that components
// share ("kernels::RoundToBf16") and for a library's.
std::string owner_of(const std::string& kernel);

// Launches of more than `most_threads` threads are sampled (LaunchCounter), and of far fewer where the cell computes so
// much that running it whole would take minutes. With `way`, the set-up takes that way where
// it has a choice. Throws what the run throws.
CountedCell count_cell(const Cell& cell, std::uint64_t seed, std::uint64_t most_threads,
                       const std::optional<std::string>& way = {});

// The modelled time of a cell: launches and products one after the other.
struct CellTime {
  std::string card;
  double seconds = 0, floor = 0;  // floor: what the component's cost takes at the card's ceilings
  double arithmetic = 0;          // what the cost's FLOPs take at the rate of the units that do them
  double known_share = 1;         // of the accesses of the kernel where it is least: LaunchWork::known_share
  std::string limiter;            // of the longest part
  std::string way;                // where set-up had a choice: the fastest on this card, as a measurement would find
  struct Part {
    std::string name;
    model::ModelledTime time;
    model::LaunchWork work;  // of a kernel's launch
  };
  std::vector<Part> parts;
  std::vector<std::string> unknown;  // kernels without pinned figures: no time is given
};
CellTime model_cell(const model::Card& card, const model::CompiledKernels& compiled, const CountedCell& cell);

}  // namespace twinbench
