// libFuzzer target: the bytes as a scenario file, by the readers of its keys and criteria. (The whole of it, which
// needs the kinds and runs, is replayed in scenarios/runner/changed_files_test.cpp.)
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "harness/fuzz/as_file.h"
#include "harness/fuzz/unless_refused.h"
#include "scenarios/runner/criterion.h"
#include "scenarios/runner/keys.h"

namespace {

using namespace twinbench;

const std::vector<std::string> kBlocks = {"sizes", "options", "shows", "criteria"};
const std::vector<Key> kKeys = {text_key("name", "a name").or_else("none"),
                                text_key("summary", "a sentence").or_else(""),
                                choice_key("tier", {"smoke", "std", "full"}, "a tier").or_else("std"),
                                choice_key("dtype", {"fp32", "bf16"}, "a mode").or_else("fp32"),
                                count_key("seed", 0, 0x1p53, "a seed").or_else(1),
                                count_key("pairs", 1, 1000, "pairs").or_else(8),
                                real_key("seconds", 0, 100, "seconds").or_else(1),
                                counts_key("batches", 1, 1e6, 2, "sizes").or_else(nlohmann::json::array({1, 2})),
                                texts_key("curves", 1, "curves").or_else(nlohmann::json::array({"energy"}))};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const AsFile file(data, size);
  unless_refused([&] {
    const YAML::Node root = read_yaml(file.path(), "scenario");
    if (!root.IsMap()) return;
    YAML::Node plain;  // what is not read as a key here
    for (const auto& entry : root)
      for (const Key& key : kKeys)
        if (entry.first.IsScalar() && entry.first.Scalar() == key.name) plain[key.name] = entry.second;
    unless_refused([&] {
      const auto values = read_keys(plain, "fuzzed", kKeys);
      if (!std::isfinite(values["seconds"].get<double>()) || values["pairs"].get<std::int64_t>() < 1) std::abort();
      check_plain_name(values["name"], "fuzzed: name");
    });
    for (const auto& block : kBlocks) unless_refused([&] { check_keys(root[block], block, {"flows", "baseline"}); });
    const YAML::Node criteria = root["criteria"];
    if (!criteria.IsDefined() || !criteria.IsSequence()) return;
    for (const auto& node : criteria)
      unless_refused([&] {
        const Criterion criterion = read_criterion(node, "fuzzed");
        if (criterion.limit().empty() || criterion.holds(std::nan(""))) std::abort();
        for (const Values values :
             {Values::kAny, Values::kNonNegative, Values::kShare, Values::kErrorRatio, Values::kTolerances})
          (void)criterion.says_nothing(values);
      });
  });
  return 0;
}
