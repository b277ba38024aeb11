// Scenario files, read strictly: what the file says is checked against the kind and the training run that it names.
#include "scenarios/runner/config.h"

#include <algorithm>
#include <filesystem>
#include <regex>

#include "scenarios/runner/catalogue.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"
#include "src/registry.h"

namespace twinbench {
namespace {

using nlohmann::json;

constexpr double kLargestSeed = 0x1p53;

const std::vector<std::string> kTiers = {"smoke", "std", "full"};
const std::vector<std::string> kDevices = {"any", "cuda"};

// The keys that every kind has. Blocks (sizes, options, shows, criteria) are read on their own.
std::vector<Key> common_keys() {
  return {text_key("name", "a name of small letters, digits and underscores"),
          text_key("experiment", "the kind of experiment"),
          text_key("run", "a training run, <pipeline>.<run>"),
          text_key("source", "the specification's scenario, such as 'energy_flow SC21'"),
          text_key("part", "how much of the source is shown here").or_else(""),
          choice_key("tier", kTiers, "smoke, std or full"),
          choice_key("device", kDevices, "any, or cuda: too much for any other").or_else("any"),
          text_key("summary", "one sentence"),
          text_key("dataset", "a dataset file, or 'default'").or_else("default"),
          count_key("seed", 0, kLargestSeed, "the seed of all that is drawn"),
          choice_key("dtype", {"fp32", "tf32", "bf16"}, "fp32, tf32 or bf16")};
}

// How a specification numbers its scenarios, and how many it has: SC01 to SC36, S1 to S24.
struct Numbering {
  const char *pipeline, *prefix;
  std::size_t digits;
  int last;
};
constexpr Numbering kNumberings[] = {{"energy_flow", "SC", 2, 36}, {"sem", "S", 1, 24}, {"trainer2", "S", 1, 24}};

void check_source(const ScenarioConfig& config) {
  static const std::regex form("([a-z][a-z0-9_]*) (S[A-Z]?[0-9]+)");
  std::smatch found;
  const std::string field = config.file + ": source";
  constexpr std::size_t kLongest = 64;  // the expression is matched by recursion
  if (config.source.size() > kLongest || !std::regex_match(config.source, found, form))
    throw Error(ErrorKind::kOutOfRange, field, config.source,
                "give the pipeline and the scenario's number, such as 'energy_flow SC21' or 'sem S4'");
  if (found[1] != config.pipeline())
    throw Error(ErrorKind::kOutOfRange, field, config.source, "it is of another pipeline than the run " + config.run);
  for (const auto& one : kNumberings) {
    if (found[1] != one.pipeline) continue;
    std::vector<std::string> numbers;
    for (int i = 1; i <= one.last; ++i) {
      const std::string number = std::to_string(i);
      numbers.push_back(one.prefix + std::string(one.digits - std::min(one.digits, number.size()), '0') + number);
    }
    if (std::find(numbers.begin(), numbers.end(), found[2]) == numbers.end())
      throw Error(ErrorKind::kOutOfRange, field, config.source,
                  "that specification's scenarios are " + numbers.front() + " to " + numbers.back());
  }
}

bool matches(const MeasureSpec& spec, const std::string& measure) {
  if (!spec.name.ends_with(".*")) return spec.name == measure;
  const auto stem = spec.name.substr(0, spec.name.size() - 1);
  return measure.size() > stem.size() && measure.starts_with(stem);
}

// Every criterion judges something the kind measures, both halves are judged, and all that the kind requires.
void check_criteria(const ScenarioConfig& config, const Experiment& experiment) {
  std::vector<std::string> names;
  for (const auto& spec : experiment.measures) names.push_back(spec.name);
  bool baseline = false, optimized = false;
  for (std::size_t i = 0; i < config.criteria.size(); ++i) {
    const auto& measure = config.criteria[i].measure;
    const auto spec = std::find_if(experiment.measures.begin(), experiment.measures.end(),
                                   [&](const MeasureSpec& one) { return matches(one, measure); });
    if (spec == experiment.measures.end())
      throw Error(ErrorKind::kUnknownName, config.file + ": criteria[" + std::to_string(i) + "]: measure", measure,
                  "experiment " + experiment.name + " measures no such thing" + did_you_mean(measure, names));
    if (const auto why = config.criteria[i].says_nothing(spec->values); !why.empty())
      throw Error(ErrorKind::kOutOfRange, config.file + ": criteria[" + std::to_string(i) + "]: " + measure,
                  config.criteria[i].limit(), "it says nothing: " + why);
    for (std::size_t before = 0; before < i; ++before)
      if (config.criteria[before].measure == measure && config.criteria[before].limit() == config.criteria[i].limit())
        throw Error(ErrorKind::kOutOfRange, config.file + ": criteria[" + std::to_string(i) + "]: " + measure,
                    config.criteria[i].limit(),
                    "criteria[" + std::to_string(before) + "] says the same: leave one out");
    baseline |= spec->half == Half::kBaseline;
    optimized |= spec->half == Half::kOptimized;
  }
  const auto missing = [&](const std::string& what, const std::string& remedy) {
    throw Error(ErrorKind::kOutOfRange, config.file + ": criteria", what + " is not judged", remedy);
  };
  const std::string half = "a scenario proves both halves; add a criterion on a measure that begins with ";
  if (!baseline) missing("what the baseline shows", half + "'baseline.'");
  if (!optimized) missing("what the optimized run does not", half + "'optimized.'");
  for (const auto& spec : experiment.measures) {
    if (!spec.required) continue;
    if (std::none_of(config.criteria.begin(), config.criteria.end(),
                     [&](const Criterion& criterion) { return matches(spec, criterion.measure); }))
      missing(spec.name, "every scenario of kind " + experiment.name + " has a criterion on it: " + spec.meaning);
  }
}

void check_needs(const ScenarioConfig& config, const Experiment& experiment, const RunSource& source) {
  const auto refuse = [&](const char* what) {
    throw Error(ErrorKind::kOutOfRange, config.file + ": run", config.run,
                "experiment " + experiment.name + " needs a run that gives " + what + ", and this one gives none");
  };
  if (experiment.needs_state && !source.gives_state) refuse("its state");
  if (experiment.needs_losses && source.losses.empty()) refuse("losses");
  if (experiment.needs_windows && !source.gives_windows) refuse("gradients of a window's items");
}

// A criterion is on one thing, and on a loss that the run has.
void check_members(const ScenarioConfig& config, const Experiment& experiment, const RunSource& source) {
  for (std::size_t i = 0; i < config.criteria.size(); ++i) {
    const auto& measure = config.criteria[i].measure;
    const std::string field = config.file + ": criteria[" + std::to_string(i) + "]: measure";
    if (measure.find('*') != std::string::npos)
      throw Error(ErrorKind::kUnknownName, field, measure, "'*' stands for names: give a criterion for each of them");
    for (const auto& spec : experiment.measures) {
      if (spec.members != Names::kLosses || !matches(spec, measure)) continue;
      const std::string loss = measure.substr(spec.name.size() - 1);
      if (std::find(source.losses.begin(), source.losses.end(), loss) == source.losses.end())
        throw Error(ErrorKind::kUnknownName, field, measure,
                    "the run " + config.run + " has no such loss" + did_you_mean(loss, source.losses));
    }
  }
}

// What names an output, names one that the run has.
void check_outputs(const ScenarioConfig& config, const Experiment& experiment, const RunSource& source) {
  for (const auto& key : experiment.keys) {
    if (!key.of_outputs) continue;
    const auto names = config.texts(key.name);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (std::find(source.outputs.begin(), source.outputs.end(), names[i]) == source.outputs.end())
        throw Error(ErrorKind::kUnknownName, config.file + ": " + key.name + "[" + std::to_string(i) + "]", names[i],
                    "the run " + config.run + " has no such output" + did_you_mean(names[i], source.outputs));
  }
}

const std::string& name_of(const Experiment& one) { return one.name; }
std::string name_of(const RunSource& one) { return one.id(); }

// The file's own, or, of a kind that goes over a list of values, one for each; and with what is switched.
std::vector<ScenarioConfig> situations(const ScenarioConfig& config) {
  std::vector<ScenarioConfig> all;
  for (const auto& [key, to] : kSwitchingKeys)
    if (config.keys.contains(key) && !config.text(key).empty())
      all.push_back(with_value(config, key, config.text(key), to));
  if (!config.keys.contains("over") || !config.keys.contains("values"))
    all.push_back(config);
  else
    for (const auto value : config.counts("values"))
      all.push_back(with_value(config, "over", config.text("over"), value));
  return all;
}

}  // namespace

std::string to_string(ScenarioTier tier) { return kTiers.at(static_cast<std::size_t>(tier)); }

ScenarioTier tier_named(const std::string& word, const std::string& field) {
  for (const auto tier : {ScenarioTier::kSmoke, ScenarioTier::kStd, ScenarioTier::kFull})
    if (to_string(tier) == word) return tier;
  throw Error(ErrorKind::kUnknownName, field, word, "give smoke, std or full" + did_you_mean(word, kTiers));
}

ScenarioConfig read_scenario(const std::string& path, const Catalogue& catalogue) {
  const auto root = read_yaml(path, "scenario");
  if (!root.IsMap()) throw Error(ErrorKind::kBadArgument, path, "not a map", "write 'key: value' lines");
  // The kind first: it decides which keys there are.
  const auto named = [&](const char* key, const auto& all) {
    if (root[key] && root[key].IsScalar()) return root[key].Scalar();
    std::string names;
    for (const auto& one : all) names += (names.empty() ? "" : ", ") + name_of(one);
    throw Error(ErrorKind::kBadArgument, path + ": key", key, "it is missing, or no word: give one of " + names);
  };
  const auto& experiment = catalogue.experiment(named("experiment", catalogue.experiments), path + ": experiment");
  const auto& source = catalogue.run(named("run", catalogue.runs), path + ": run");

  auto keys = common_keys();
  std::vector<std::string> known = {"shows", "sizes", "options", "criteria"};
  for (const auto& key : experiment.keys) keys.push_back(key);
  for (const auto& key : keys) known.push_back(key.name);
  check_keys(root, path, known);
  YAML::Node flat;  // without the blocks
  for (const auto& entry : root)
    if (std::find(known.begin(), known.begin() + 4, entry.first.Scalar()) == known.begin() + 4)
      flat[entry.first.Scalar()] = entry.second;
  const auto values = read_keys(flat, path, keys);

  ScenarioConfig config;
  config.file = path;
  config.name = values["name"];
  config.experiment = experiment.name;
  config.run = source.id();
  config.source = values["source"];
  config.part = values["part"];
  config.tier = tier_named(values["tier"], path + ": tier");
  config.card_only = values["device"] == "cuda";
  config.summary = values["summary"];
  config.dataset = values["dataset"];
  config.seed = values["seed"];
  for (const Dtype dtype : {Dtype::kFp32, Dtype::kTf32, Dtype::kBf16})
    if (to_string(dtype) == values["dtype"]) config.dtype = dtype;
  config.keys = json::object();
  for (const auto& key : experiment.keys) config.keys[key.name] = values[key.name];
  const auto shows = read_keys(
      root["shows"], path + ": shows",
      {text_key("baseline", "what the baseline must show"), text_key("optimized", "what the optimized run must not")});
  config.baseline_shows = shows["baseline"];
  config.optimized_shows = shows["optimized"];
  config.sizes = read_keys(root["sizes"], path + ": sizes", source.sizes).get<Sizes>();
  config.options = read_keys(root["options"], path + ": options", source.options).get<Options>();
  const auto criteria = root["criteria"];
  if (!criteria || (criteria.IsSequence() && criteria.size() == 0))
    throw Error(ErrorKind::kOutOfRange, path + ": criteria", "none", "a scenario without a criterion proves nothing");
  if (!criteria.IsSequence())
    throw Error(ErrorKind::kBadArgument, path + ": criteria", given(criteria),
                "give a list, such as '- {measure: wall.ratio, at_least: 2, why: ...}'");
  for (std::size_t i = 0; i < criteria.size(); ++i)
    config.criteria.push_back(read_criterion(criteria[i], path + ": criteria[" + std::to_string(i) + "]"));
  check_plain_name(config.name, config.file + ": name");
  check_source(config);
  check_needs(config, experiment, source);
  check_criteria(config, experiment);
  check_members(config, experiment, source);
  check_outputs(config, experiment, source);
  if (experiment.check) experiment.check(config);
  if (source.check)
    for (const auto& one : situations(config)) source.check(one);
  return config;
}

ScenarioConfig with_value(const ScenarioConfig& config, const std::string& key, const std::string& name,
                          std::int64_t value) {
  ScenarioConfig changed = config;
  if (changed.sizes.count(name)) {
    changed.sizes[name] = value;
  } else if (changed.options.count(name)) {
    changed.options[name] = static_cast<double>(value);
  } else {
    std::vector<std::string> known;
    for (const auto& entry : config.sizes) known.push_back(entry.first);
    for (const auto& entry : config.options) known.push_back(entry.first);
    throw Error(ErrorKind::kUnknownName, config.file + ": " + key, name,
                "the run has no size or option of that name" + did_you_mean(name, known));
  }
  return changed;
}

std::vector<ScenarioConfig> read_scenarios(const std::string& folder, const Catalogue& catalogue) {
  std::vector<std::string> files;
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed))
    if (it->path().extension() == ".yaml") files.push_back(it->path().string());
  if (files.empty())
    throw Error(ErrorKind::kInputOutput, "scenario folder", folder,
                "it holds no .yaml file; run from the repository's root or give --folder");
  std::sort(files.begin(), files.end());
  std::vector<ScenarioConfig> configs;
  for (const auto& file : files) {
    auto config = read_scenario(file, catalogue);
    for (const auto& other : configs)
      if (other.name == config.name)
        throw Error(ErrorKind::kBadArgument, file + ": name", config.name, other.file + " has it too; rename one");
    configs.push_back(std::move(config));
  }
  return configs;
}

}  // namespace twinbench
