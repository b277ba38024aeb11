// `twinbench configuration`: declared here so that main needs no header of scenarios/, where it is defined.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace twinbench {

struct ConfigurationOptions {
  std::string name;  // of one configuration, or its file; empty: a table of all below `folder`
  std::string folder = "configurations";
  double memory_gb = 32;  // of the card, 1e9 bytes each
  bool as_json = false;
};

CLI::App* add_configuration_command(CLI::App& program, ConfigurationOptions& options);

// What a configuration asks for and gets: flows, parameters, bytes; where the bytes are too many, how it would fit.
// Warns on stderr of flows that a quota drops. Throws as read_configuration does.
int configuration_command(const ConfigurationOptions& options);

}  // namespace twinbench
