// Dataset files through the readers of src/formats.
#include "scenarios/energy_flow/dataset_pairs.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "src/common/error.h"
#include "src/common/one_line.h"
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

// What a reader says of the file, with the file's name.
template <class Read>
auto of_file(const ScenarioConfig& config, const Read& read) {
  const std::string path = path_of(config);
  try {
    return read(path);
  } catch (const Error& error) {
    if (std::string(error.what()).find(path) != std::string::npos) throw;
    throw Error(error.kind(), config.file + ": dataset", path + ", " + error.field() + ": " + error.value(),
                error.remedy());
  }
}

// Read once: many scenarios of a folder have the same dataset.
const DatasetExtent& known_extent(const std::string& path) {
  using Version = std::tuple<std::uintmax_t, std::filesystem::file_time_type>;
  static std::map<std::string, std::pair<std::optional<Version>, DatasetExtent>> known;
  std::error_code failed;  // of what is no file, too: its reader says so
  const Version now{std::filesystem::file_size(path, failed), std::filesystem::last_write_time(path, failed)};
  auto& [version, extent] = known[path];
  if (version != now) extent = extent_of(path), version = now;
  return extent;
}

std::string left_out(const DatasetExtent& there) {
  constexpr std::size_t kListed = 8;
  std::string rows;
  for (std::size_t i = 0; i < std::min(there.invalid.size(), kListed); ++i)
    rows += (i > 0 ? ", " : "") + std::to_string(there.invalid[i]);
  return std::to_string(there.invalid.size()) + " of " + std::to_string(there.rows) +
         " rows are invalid and left out: " + rows + (there.invalid.size() > kListed ? ", ..." : "");
}

void require_extent(const ScenarioConfig& config, const DatasetExtent& there, const std::string& pairs,
                    const std::string& width) {
  const auto rows = config.sizes.at(pairs), columns = config.sizes.at(width);
  if (there.width != columns)
    throw Error(ErrorKind::kDimensionMismatch, config.file + ": sizes." + width, std::to_string(columns),
                path_of(config) + " has embeddings " + std::to_string(there.width) + " wide: give that");
  if (there.valid() < rows)
    throw Error(ErrorKind::kOutOfRange, config.file + ": sizes." + pairs, std::to_string(rows),
                path_of(config) + " has only " + std::to_string(there.valid()) + " pairs: give at most so many" +
                    (there.invalid.empty() ? "" : "; " + left_out(there)));
}

}  // namespace

void check_dataset(const ScenarioConfig& config, const std::string& pairs, const std::string& width) {
  if (config.dataset == "default" && !std::filesystem::exists(kDefault)) return;
  require_file(config);
  require_extent(config, of_file(config, known_extent), pairs, width);
}

DatasetPairs dataset_pairs(const ScenarioConfig& config, const std::string& pairs, const std::string& width) {
  require_file(config);
  const auto dataset = of_file(config, [](const std::string& path) { return read_any(path); });
  const DatasetExtent there{dataset.rows, dataset.width, invalid_rows(dataset)};
  require_extent(config, there, pairs, width);
  const auto count = config.sizes.at(pairs), columns = config.sizes.at(width);
  DatasetPairs result{at::empty({count, columns}), at::empty({count, columns})};
  for (std::int64_t row = 0; std::ssize(result.rows) < count; ++row) {
    if (std::binary_search(there.invalid.begin(), there.invalid.end(), row)) continue;
    const std::int64_t to = std::ssize(result.rows) * columns;
    std::copy_n(dataset.input(row), columns, result.input.mutable_data_ptr<float>() + to);
    std::copy_n(dataset.target(row), columns, result.target.mutable_data_ptr<float>() + to);
    result.input_texts.emplace_back(dataset.input_text(row));
    result.target_texts.emplace_back(dataset.target_text(row));
    result.rows.push_back(row);
  }
  return result;
}

std::string rows_left_out(const ScenarioConfig& config) {
  if (!std::filesystem::exists(path_of(config))) return "";
  const DatasetExtent& there = of_file(config, known_extent);
  return there.invalid.empty() ? "" : one_line(path_of(config)) + ": " + left_out(there);
}

}  // namespace twinbench::energy_flow
