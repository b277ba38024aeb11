// Prints configurations: flows, parameters, bytes, and whether they fit.
#include "harness/command/configuration.h"

#include <cstdio>
#include <iostream>

#include "harness/ledger/ledger.h"
#include "scenarios/energy_flow/footprint.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {
namespace {

using namespace energy_flow;
using nlohmann::json;

constexpr double kGigabyte = 1e9;

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  for (int place = static_cast<int>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<std::size_t>(place), ",");
  return digits;
}

std::string gigabytes(double bytes) {
  const bool small = bytes < 0.0995 * kGigabyte;
  const double value = bytes / (small ? 1e6 : kGigabyte);
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", value < 9.995 ? 2 : 1, value, small ? "MB" : "GB");
  return text;
}

std::string percent(std::int64_t part, std::int64_t of) {
  char text[32];
  const double share = of == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(of);
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

double parameters(const Configuration& configuration) {
  double all = 0;
  for (const auto& part : parameters_of(configuration)) all += static_cast<double>(part.count);
  return all;
}

std::string split_in_words(const Configuration& configuration, double memory) {
  const auto split = split_that_fits(configuration, memory);
  if (!split) {
    Configuration least = configuration;
    least.fields["micro_batch"] = 1;
    return "cannot fit: " + gigabytes(footprint_of(least).without_tape()) + " without any tape";
  }
  return "micro_batch " + std::to_string(split->micro_batch) + " and keep_state_every " +
         std::to_string(split->keep_state_every) + " need " + gigabytes(split->bytes);
}

std::string verdict(const Configuration& configuration, double memory) {
  if (footprint_of(configuration).optimized() <= memory) return "fits";
  return "does not fit; " + split_in_words(configuration, memory);
}

Configuration with_every_flow(Configuration configuration) {
  configuration.fields["max_active_flows"] = population_of(configuration).requested;
  return configuration;
}

json row_of(const Configuration& configuration, double memory) {
  const Population flows = population_of(configuration);
  const Footprint bytes = footprint_of(configuration);
  json parts = json::array();
  for (const auto& part : parameters_of(configuration))
    parts.push_back({{"part", part.part}, {"parameters", part.count}, {"trained", part.trained}});
  return {{"name", configuration.name},
          {"file", configuration.file},
          {"source", configuration.source},
          {"fields", configuration.fields},
          {"steps", configuration.most_steps()},
          {"flows",
           {{"requested", flows.requested},
            {"quota", flows.quota},
            {"admitted", flows.admitted},
            {"dropped", flows.dropped}}},
          {"parameters", parts},
          {"bytes",
           {{"weights", bytes.weights},
            {"gradients", bytes.gradients},
            {"moments", bytes.moments},
            {"storage", bytes.storage},
            {"batches", bytes.batches},
            {"baseline_tape", bytes.baseline_tape},
            {"optimized_tape", bytes.optimized_tape},
            {"baseline", bytes.baseline()},
            {"optimized", bytes.optimized()}}},
          {"memory", memory},
          {"verdict", verdict(configuration, memory)},
          {"with_every_flow", split_in_words(with_every_flow(configuration), memory)}};
}

void print_table(const std::vector<Configuration>& configurations, double memory) {
  std::printf("%-20s %-12s %5s %9s %9s %9s %8s %7s %9s %9s  in %s\n", "configuration", "lattice", "rows", "requested",
              "admitted", "dropped", "million", "steps", "baseline", "optimized", gigabytes(memory).c_str());
  for (const auto& configuration : configurations) {
    const Population flows = population_of(configuration);
    const Footprint bytes = footprint_of(configuration);
    const std::string lattice = std::to_string(configuration.count("lattice_width")) + "x" +
                                std::to_string(configuration.count("lattice_height")) + "x" +
                                std::to_string(configuration.count("lattice_depth"));
    std::printf("%-20s %-12s %5s %9s %9s %9s %8.1f %7s %9s %9s  %s\n", configuration.name.c_str(), lattice.c_str(),
                std::to_string(configuration.count("batch_size")).c_str(), grouped(flows.requested).c_str(),
                grouped(flows.admitted).c_str(), percent(flows.dropped, flows.requested).c_str(),
                parameters(configuration) / 1e6, std::to_string(configuration.most_steps()).c_str(),
                gigabytes(bytes.baseline()).c_str(), gigabytes(bytes.optimized()).c_str(),
                verdict(configuration, memory).c_str());
  }
  std::printf(
      "rows of a batch; flows before any spawning; millions of parameters; bytes of a micro-batch's forward and\n"
      "backward pass in which no row stops early, beside the workspaces of library products\n");
}

void print_one(const Configuration& configuration, double memory) {
  const Population flows = population_of(configuration);
  const Footprint bytes = footprint_of(configuration);
  std::printf("%s: %s (%s)\n", configuration.name.c_str(), configuration.summary.c_str(), configuration.file.c_str());
  std::printf("flows       %s requested, %s admitted, %s dropped; quota %s a row\n", grouped(flows.requested).c_str(),
              grouped(flows.admitted).c_str(), grouped(flows.dropped).c_str(), grouped(flows.quota).c_str());
  for (const auto& part : parameters_of(configuration))
    std::printf("parameters  %13s  %s%s\n", grouped(part.count).c_str(), part.part.c_str(),
                part.trained ? "" : ", not trained");
  const auto line = [](const char* what, double amount) {
    std::printf("bytes       %13s  %s\n", gigabytes(amount).c_str(), what);
  };
  line("weights", bytes.weights);
  line("gradients", bytes.gradients);
  line("moments of the optimizer", bytes.moments);
  line("flow storage", bytes.storage);
  line("batches", bytes.batches);
  line("tape of the baseline", bytes.baseline_tape);
  line("tape of the optimized build", bytes.optimized_tape);
  line("in all, baseline", bytes.baseline());
  line("in all, optimized", bytes.optimized());
  std::printf("in %s: %s\n", gigabytes(memory).c_str(), verdict(configuration, memory).c_str());
  if (flows.dropped > 0)
    std::printf("  with every flow that is asked for: %s\n",
                split_in_words(with_every_flow(configuration), memory).c_str());
}

void warn_of_dropped_flows(const Configuration& configuration) {
  const Population flows = population_of(configuration);
  if (flows.dropped == 0) return;
  std::cerr << "warning: " << configuration.name << ": max_active_flows "
            << grouped(configuration.count("max_active_flows")) << " gives a row " << grouped(flows.quota) << " of the "
            << grouped(configuration.cells()) << " flows it asks for; " << percent(flows.dropped, flows.requested)
            << " are dropped before the first step. Give " << grouped(flows.requested) << " for all of them\n";
}

bool is_file(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".yaml"); }

std::vector<Configuration> chosen(const ConfigurationOptions& options) {
  if (is_file(options.name)) return {read_configuration(options.name)};
  auto all = read_configurations(options.folder);
  if (options.name.empty()) return all;
  std::vector<std::string> names;
  for (const auto& configuration : all) {
    if (configuration.name == options.name) return {configuration};
    names.push_back(configuration.name);
  }
  throw Error(ErrorKind::kUnknownName, "configuration", options.name,
              "none below " + options.folder + " has this name; `twinbench configuration` lists them" +
                  did_you_mean(options.name, names));
}

}  // namespace

int configuration_command(const ConfigurationOptions& options) {
  const double memory = options.memory_gb * kGigabyte;
  const auto configurations = chosen(options);
  if (options.as_json) {
    json rows = json::array();
    for (const auto& configuration : configurations) rows.push_back(row_of(configuration, memory));
    std::cout << json{{"configurations", rows}}.dump(1) << '\n';
  } else if (options.name.empty()) {
    print_table(configurations, memory);
  } else {
    print_one(configurations.front(), memory);
  }
  std::fflush(stdout);
  for (const auto& configuration : configurations) warn_of_dropped_flows(configuration);
  return kExitPass;
}

}  // namespace twinbench
