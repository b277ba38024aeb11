// Strict YAML reading: every key is known, every value is of its type and in range.
#include "scenarios/runner/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/registry.h"

namespace twinbench {
namespace {

constexpr std::uintmax_t kLargestFile = 1 << 20;  // a scenario is a page; more is an accident or an attack

void check_keys(const YAML::Node& map, const std::string& where, const std::vector<std::string>& known) {
  if (!map.IsMap()) throw Error(ErrorKind::kBadArgument, where, "not a map", "write 'key: value' lines");
  std::vector<std::string> seen;
  for (const auto& entry : map) {
    const auto key = entry.first.as<std::string>();
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw Error(ErrorKind::kUnknownName, where + " key", key, "not a key of a scenario" + did_you_mean(key, known));
    if (std::find(seen.begin(), seen.end(), key) != seen.end())
      throw Error(ErrorKind::kBadArgument, where + " key", key, "it is given twice; keep one");
    seen.push_back(key);
  }
}

template <class T>
T read(const YAML::Node& map, const std::string& where, const std::string& key) {
  const auto node = map[key];
  if (!node) throw Error(ErrorKind::kBadArgument, where + " key", key, "it is missing");
  try {
    return node.as<T>();
  } catch (const YAML::Exception&) {
    throw Error(ErrorKind::kBadArgument, where + "." + key, node.IsScalar() ? node.Scalar() : "a list or map", "it has the wrong type");
  }
}

Criterion read_criterion(const YAML::Node& node, const std::string& where) {
  check_keys(node, where, {"measure", "equals", "at_least", "at_most", "why"});
  Criterion criterion{read<std::string>(node, where, "measure"), {}, {}, {}, read<std::string>(node, where, "why")};
  int limits = 0;
  for (auto [key, limit] : {std::pair{"equals", &criterion.equals}, {"at_least", &criterion.at_least}, {"at_most", &criterion.at_most}})
    if (node[key]) {
      *limit = read<double>(node, where, key);
      if (!std::isfinite(**limit)) throw Error(ErrorKind::kNonFinite, where + "." + key, node[key].Scalar(), "give a finite limit");
      ++limits;
    }
  if (limits != 1) throw Error(ErrorKind::kOutOfRange, where, std::to_string(limits) + " limits", "give exactly one of equals, at_least, at_most");
  return criterion;
}

Dtype read_dtype(const std::string& text) {
  for (const auto dtype : {Dtype::kFp32, Dtype::kBf16})
    if (to_string(dtype) == text) return dtype;
  throw Error(ErrorKind::kBadDtype, "scenario.dtype", text, "give fp32 or bf16");
}

}  // namespace

std::string Criterion::limit() const {
  std::ostringstream text;
  if (equals) text << "= " << *equals;
  if (at_least) text << ">= " << *at_least;
  if (at_most) text << "<= " << *at_most;
  return text.str();
}

bool Criterion::holds(double value) const {
  // Accepting comparisons, so that NaN never passes.
  return (equals && value == *equals) || (at_least && value >= *at_least) || (at_most && value <= *at_most);
}

ScenarioConfig read_scenario(const std::string& path) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed) throw Error(ErrorKind::kInputOutput, "scenario", path, "it cannot be read: " + failed.message());
  if (bytes > kLargestFile) throw Error(ErrorKind::kOutOfRange, "scenario", path, "it is larger than 1 MiB");
  YAML::Node root;
  try {
    root = YAML::LoadFile(path);
  } catch (const YAML::Exception& error) {
    throw Error(ErrorKind::kBadArgument, "scenario", path, std::string("not YAML: ") + error.what());
  }
  const std::string where = "scenario";
  check_keys(root, where, {"name", "pipeline", "summary", "dataset", "seed", "dtype", "sizes", "options", "baseline_flows", "time", "criteria"});
  ScenarioConfig config;
  config.file = path;
  config.name = read<std::string>(root, where, "name");
  config.pipeline = read<std::string>(root, where, "pipeline");
  config.summary = read<std::string>(root, where, "summary");
  config.dataset = read<std::string>(root, where, "dataset");
  config.seed = read<std::uint64_t>(root, where, "seed");
  config.dtype = read_dtype(read<std::string>(root, where, "dtype"));
  config.sizes = read<Sizes>(root, where, "sizes");
  config.options = read<Options>(root, where, "options");
  for (const auto& [name, size] : config.sizes)
    if (size < 1) throw Error(ErrorKind::kOutOfRange, "scenario.sizes." + name, std::to_string(size), "give 1 or more");
  for (const auto& [name, value] : config.options)
    if (!std::isfinite(value)) throw Error(ErrorKind::kNonFinite, "scenario.options." + name, "not finite", "give a number");
  config.baseline_flows = read<std::int64_t>(root, where, "baseline_flows");
  if (config.baseline_flows < 0) throw Error(ErrorKind::kOutOfRange, "scenario.baseline_flows", std::to_string(config.baseline_flows), "give 0 (all) or more");
  const auto time = root["time"];
  check_keys(time, where + ".time", {"pairs", "seconds"});
  config.pairs = read<std::int64_t>(time, where + ".time", "pairs");
  config.seconds = read<double>(time, where + ".time", "seconds");
  if (config.pairs < 8 || !(config.seconds > 0))
    throw Error(ErrorKind::kOutOfRange, "scenario.time", std::to_string(config.pairs) + " pairs", "give at least 8 pairs (an interval needs them) and a positive number of seconds");
  const auto criteria = root["criteria"];
  if (!criteria || !criteria.IsSequence() || criteria.size() == 0)
    throw Error(ErrorKind::kOutOfRange, "scenario.criteria", path, "a scenario without a criterion proves nothing; list at least one");
  for (std::size_t i = 0; i < criteria.size(); ++i)
    config.criteria.push_back(read_criterion(criteria[i], "scenario.criteria[" + std::to_string(i) + "]"));
  return config;
}

std::vector<std::string> scenario_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    if (it->path().extension() == ".yaml") files.push_back(it->path().string());
  if (files.empty()) throw Error(ErrorKind::kInputOutput, "scenario folder", folder, "it holds no .yaml file; run from the repository's root or give --folder");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace twinbench
