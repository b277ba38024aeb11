// Their ceilings, null tests and decided speedups.
#include "harness/record/earlier_records.h"

#include "harness/record/schema.h"
#include "src/common/error.h"
#include "src/formats/json_text.h"

namespace twinbench {

nlohmann::json session_from_records(const std::vector<std::string>& files, const std::string& device) {
  nlohmann::json found = {{"ceilings", nlohmann::json::array()}, {"session", nullptr}};
  for (const auto& path : files) {
    const auto root = read_json_file(path, "--session-from");
    const auto breaches = schema_breaches(root);
    if (!breaches.empty()) throw Error(ErrorKind::kBadFile, "--session-from", path, "no record: " + breaches);
    const auto& block = root["twinbench"];
    if (!block["ceilings"].empty()) found["ceilings"] = block["ceilings"];
    const auto& session = block["session"];
    if (session.is_null() || session["null_test"].is_null()) continue;
    for (const auto& cell : session["null_test"]["cells"])
      if (device != "all" && cell["cell"].get<std::string>().find("/" + device + "/") == std::string::npos)
        throw Error(ErrorKind::kBadFile, "--session-from", path, "its null test is of another device than " + device);
    if (device == "cuda" && session.value("device", nlohmann::json()).is_null())
      throw Error(ErrorKind::kBadFile, "--session-from", path, "it holds no session of a CUDA device's timer");
    found["session"] = session;
  }
  return found;
}

std::set<std::string> decided_twins(const std::vector<std::string>& files) {
  std::set<std::string> decided;
  for (const auto& path : files) {
    const auto root = read_json_file(path, "--earlier");
    try {
      for (const auto& row : root.at("twinbench").at("speedups"))
        if (row.at("verdict") != "inconclusive")
          decided.insert(row.at("component").get<std::string>() + "/" + row.at("device").get<std::string>() + "/" +
                         row.at("dtype").get<std::string>() + "/" + row.at("case").get<std::string>());
    } catch (const nlohmann::json::exception&) {
      throw Error(ErrorKind::kBadFile, "--earlier", path, "give a record that `twinbench bench --out` wrote");
    }
  }
  return decided;
}

}  // namespace twinbench
