// Dataset files through the readers of src/formats.
#include "scenarios/energy_flow/dataset_pairs.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "src/common/error.h"
#include "src/formats/convert.h"

namespace twinbench::energy_flow {

DatasetPairs dataset_pairs(const ScenarioConfig& config, const std::string& pairs, const std::string& width) {
  const std::string path = config.dataset == "default" ? "data/default.efds" : config.dataset;
  if (!std::filesystem::exists(path))
    throw Error(ErrorKind::kInputOutput, config.file + ": dataset", path,
                "there is no such file; `twinbench data make --out " + path + "` makes it from real text");
  const auto dataset = read_any(path);
  const auto rows = config.sizes.at(pairs), columns = config.sizes.at(width);
  if (dataset.width != columns)
    throw Error(ErrorKind::kDimensionMismatch, config.file + ": sizes." + width, std::to_string(columns),
                path + " has embeddings " + std::to_string(dataset.width) + " wide");
  if (dataset.rows < rows)
    throw Error(ErrorKind::kOutOfRange, config.file + ": sizes." + pairs, std::to_string(rows),
                path + " has only " + std::to_string(dataset.rows) + " pairs");
  const auto first = [&](const std::vector<float>& of) {
    return at::from_blob(const_cast<float*>(of.data()), {rows, columns}, at::kFloat).clone();
  };
  return {first(dataset.inputs), first(dataset.targets)};
}

}  // namespace twinbench::energy_flow
