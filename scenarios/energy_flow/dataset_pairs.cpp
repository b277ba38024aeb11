// Dataset files through the readers of src/formats.
#include "scenarios/energy_flow/dataset_pairs.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "src/common/error.h"
#include "src/formats/convert.h"

namespace twinbench::energy_flow {
namespace {

constexpr const char* kDefault = "data/default.efds";

std::string path_of(const ScenarioConfig& config) { return config.dataset == "default" ? kDefault : config.dataset; }

void require_file(const ScenarioConfig& config) {
  const std::string path = path_of(config);
  if (!std::filesystem::exists(path))
    throw Error(ErrorKind::kInputOutput, config.file + ": dataset", path,
                "there is no such file; `twinbench data make --out " + path + "` makes it from real text");
}

void require_extent(const ScenarioConfig& config, const DatasetExtent& there, const std::string& pairs,
                    const std::string& width) {
  const auto rows = config.sizes.at(pairs), columns = config.sizes.at(width);
  if (there.width != columns)
    throw Error(ErrorKind::kDimensionMismatch, config.file + ": sizes." + width, std::to_string(columns),
                path_of(config) + " has embeddings " + std::to_string(there.width) + " wide: give that");
  if (there.rows < rows)
    throw Error(ErrorKind::kOutOfRange, config.file + ": sizes." + pairs, std::to_string(rows),
                path_of(config) + " has only " + std::to_string(there.rows) + " pairs: give at most so many");
}

}  // namespace

void check_dataset(const ScenarioConfig& config, const std::string& pairs, const std::string& width) {
  if (config.dataset == "default" && !std::filesystem::exists(kDefault)) return;
  require_file(config);
  require_extent(config, extent_of(path_of(config)), pairs, width);
}

DatasetPairs dataset_pairs(const ScenarioConfig& config, const std::string& pairs, const std::string& width) {
  require_file(config);
  const auto dataset = read_any(path_of(config));
  require_extent(config, {dataset.rows, dataset.width}, pairs, width);
  const auto rows = config.sizes.at(pairs), columns = config.sizes.at(width);
  const auto first = [&](const std::vector<float>& of) {
    return at::from_blob(const_cast<float*>(of.data()), {rows, columns}, at::kFloat).clone();
  };
  DatasetPairs result{first(dataset.inputs), first(dataset.targets)};
  for (std::int64_t row = 0; row < rows; ++row) {
    result.input_texts.emplace_back(dataset.input_text(row));
    result.target_texts.emplace_back(dataset.target_text(row));
  }
  return result;
}

}  // namespace twinbench::energy_flow
