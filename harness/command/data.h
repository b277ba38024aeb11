// `twinbench data make / info / convert`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace twinbench {

struct DataOptions {
  std::string action;  // make, info, convert
  std::vector<std::string> inputs;
  std::string out;
  bool as_json = false, normalise = false, drop_invalid = false;
  std::string stored;            // fp32, bf16; empty: as the source
  long long width = 0;           // 0: any
  std::vector<long long> words;  // fewest and most words of a sentence that is kept; empty: the default
  long long rows = -1;           // most pairs made from text, thinned evenly; 0: all; -1: the default
};

CLI::App* add_data_command(CLI::App& app, DataOptions& options);
int data_command(const DataOptions& options);

}  // namespace twinbench
