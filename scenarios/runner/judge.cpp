// Rows of the record's scenario section.
#include "scenarios/runner/judge.h"

#include <algorithm>

#include "harness/record/record.h"
#include "src/common/error.h"
#include "src/registry.h"

namespace twinbench {

using nlohmann::json;

json judged(const ScenarioConfig& config, const Findings& findings, const Device& device) {
  json row = {{"name", config.name},
              {"pipeline", config.pipeline()},
              {"experiment", config.experiment},
              {"source", config.source},
              {"part", config.part},
              {"tier", to_string(config.tier)},
              {"shows", {{"baseline", config.baseline_shows}, {"optimized", config.optimized_shows}}},
              {"summary", config.summary},
              {"verdict", "pass"},
              {"reason", ""},
              {"device", to_string(device)},
              {"configuration", findings.configuration},
              {"variants", findings.variants},
              {"speedup", findings.speedup},
              {"criteria", json::array()}};
  auto& configuration = row["configuration"];
  for (const auto& [name, value] : config.sizes) configuration[name] = value;
  for (const auto& [name, value] : config.options) configuration[name] = value;
  for (const auto& [name, value] : config.keys.items())
    configuration[name] = value.is_array() ? json(value.dump()) : value;
  configuration["dtype"] = to_string(config.dtype);
  configuration["seed"] = config.seed;
  std::string failed;
  std::size_t passed = 0;
  for (const auto& criterion : config.criteria) {
    row["criteria"].push_back(judge(criterion, findings.measures));
    const auto& one = row["criteria"].back();
    passed += one["verdict"] == "pass" ? 1 : 0;
    if (one["verdict"] == "fail") failed += (failed.empty() ? "" : "; ") + one["name"].get<std::string>();
  }
  if (!failed.empty()) {
    row["verdict"] = "fail";
    row["reason"] = failed;
  } else if (passed == 0) {
    row["verdict"] = "skip";
    row["reason"] = "no criterion could be judged here";
  }
  make_strict(row);
  return row;
}

namespace {

// A scenario of a mode that no run has yet may be listed: it is refused when it is to run.
void require_modes(const ScenarioConfig& config, const RunSource& source) {
  for (const auto& id : source.components) {
    const auto& known = find_component(id).spec.dtypes;
    if (std::find(known.begin(), known.end(), config.dtype) == known.end())
      throw Error(ErrorKind::kBadDtype, config.file + ": dtype", to_string(config.dtype), id + " has no such mode");
  }
}

// What failed, with its value, if it was measured by clocks alone. Empty: nothing failed, or other things, too.
std::string failed_by_time(const ScenarioConfig& config, const Measures& measures, const json& row) {
  std::string failed;
  for (std::size_t i = 0; i < config.criteria.size(); ++i) {
    const auto& one = row["criteria"][i];
    if (one["verdict"] != "fail") continue;
    if (!measures.at(config.criteria[i].measure).by_time) return "";
    failed += (failed.empty() ? "" : "; ") + one["name"].get<std::string>() + ": " + one["measured"].dump();
  }
  return failed;
}

}  // namespace

json run_scenario(const ScenarioConfig& config, const Catalogue& catalogue, const Device& device, bool quick) {
  const auto& experiment = catalogue.experiment(config.experiment, config.file + ": experiment");
  const auto& source = catalogue.run(config.run, config.file + ": run");
  require_modes(config, source);
  json before = json::array();
  for (;;) {
    const Findings findings = experiment.run({config, source, device, quick});
    json row = judged(config, findings, device);
    const std::string failed = failed_by_time(config, findings.measures, row);
    if (failed.empty() || before.size() + 1 == kRunsOfFailingTimes) {
      if (!before.empty()) row["failed_before"] = before;
      return row;
    }
    before.push_back(failed);
  }
}

std::vector<Device> devices_of(const RunSource& source) {
  std::vector<Device> devices = {c10::DeviceType::CPU};
  if (std::all_of(source.components.begin(), source.components.end(),
                  [](const std::string& id) { return find_component(id).has_kernel; }))
    devices.insert(devices.end(), {Device(c10::DeviceType::CUDA), Device::simt()});
  return devices;
}

}  // namespace twinbench
