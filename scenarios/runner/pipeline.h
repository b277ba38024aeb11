// What a pipeline's wiring gives the scenario runner: measures by name, rows for the record, a speedup.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "scenarios/runner/config.h"

namespace twinbench {

// A number a criterion can be held against, or why there is none here.
struct Measure {
  std::optional<double> value;
  std::string reason;  // "no GPU on this machine"
};

struct PipelineOutcome {
  std::map<std::string, Measure> measures;
  nlohmann::json configuration = nlohmann::json::object();
  nlohmann::json variants = nlohmann::json::array();  // rows of the record's scenario section
  nlohmann::json speedup;                              // null where none was measured
};

struct PipelineOptions {
  bool quick = false;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
};

using Pipeline = PipelineOutcome (*)(const ScenarioConfig&, const PipelineOptions&);

// scenarios/energy_flow/pipeline.cpp: one step of every flow of a real batch.
PipelineOutcome run_energy_flow(const ScenarioConfig& config, const PipelineOptions& options);

}  // namespace twinbench
