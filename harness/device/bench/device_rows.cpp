// The device half of a session.
#include "harness/device/bench/device_rows.h"

#include <algorithm>
#include <string>

#include "harness/device/device_session.h"

namespace twinbench {

using nlohmann::json;

json opened_device_session(BenchDevice& device) {
  json row = to_json(open_device_session(device.timer(), device.host()));
  row["name"] = device.name();
  return row;
}

json measured_device_ceilings(BenchDevice& device, bool quick) {
  std::vector<std::string> refused;
  json rows = json::array();
  for (const auto& ceiling :
       measure_device_ceilings(device.ceiling_work(quick), device.timer(), device.host(), device.name(), refused))
    rows.push_back(to_json(ceiling));
  return {{"ceilings", rows}, {"refused", refused}};
}

json joined_null_tests(const std::vector<json>& tests) {
  json joined = {{"verdict", "same"}, {"pairs", 0}, {"cells", json::array()}, {"noise_floor", nullptr}, {"reason", ""}};
  for (const auto& test : tests) {
    joined["pairs"] = joined["pairs"].get<int>() + test["pairs"].get<int>();
    for (const auto& cell : test["cells"]) joined["cells"].push_back(cell);
    if (test["noise_floor"].is_number())
      joined["noise_floor"] = std::max(test["noise_floor"].get<double>(),
                                       joined["noise_floor"].is_number() ? joined["noise_floor"].get<double>() : 0.0);
    // A difference outranks an undecided test, as within one device.
    const std::string verdict = test["verdict"];
    if (verdict != "same" && (joined["verdict"] == "same" || joined["verdict"] == "inconclusive")) {
      joined["verdict"] = verdict;
      joined["reason"] = test["reason"];
    }
  }
  return joined;
}

}  // namespace twinbench
