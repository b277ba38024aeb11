// Checks and row operations on a dataset in memory.
#include "src/formats/dataset.h"

#include <algorithm>
#include <cmath>

#include "src/common/error.h"
#include "src/formats/row_check.h"

namespace twinbench {

const char* name_of(StoredType type) { return type == StoredType::kFp32 ? "fp32" : "bf16"; }

void check_sizes(const Dataset& dataset) {
  const auto elements = static_cast<std::size_t>(dataset.rows * dataset.width);
  const bool agree = dataset.rows >= 0 && dataset.width >= 1 && dataset.inputs.size() == elements &&
                     dataset.targets.size() == elements &&
                     dataset.texts.size() == static_cast<std::size_t>(2 * dataset.rows);
  if (!agree) {
    throw Error(ErrorKind::kInternal, "dataset", std::to_string(dataset.rows) + " x " + std::to_string(dataset.width),
                "its embeddings and texts have other sizes");
  }
}

void check_finite(const Dataset& dataset) {
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    for (const bool target : {false, true}) {
      const float* values = target ? dataset.target(row) : dataset.input(row);
      if (std::isfinite(row_square_sum(values, dataset.width))) continue;
      throw Error(ErrorKind::kNonFinite,
                  std::string(target ? "target_embeddings" : "input_embeddings") + " row " + std::to_string(row),
                  "NaN or Inf", "repair that row, or drop invalid rows while converting");
    }
  }
}

TextReport report_texts(const Dataset& dataset) {
  TextReport report;
  for (std::size_t i = 0; i < dataset.texts.size(); ++i) {
    report.empty += dataset.texts[i].empty();
    report.invalid_utf8 += !is_utf8(dataset.texts[i]);
  }
  return report;
}

void normalise_rows(Dataset& dataset) {
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    normalise_row(dataset.inputs.data() + row * dataset.width, dataset.width);
    normalise_row(dataset.targets.data() + row * dataset.width, dataset.width);
  }
}

std::vector<std::int64_t> invalid_rows(const Dataset& dataset) {
  std::vector<std::int64_t> invalid;
  for (std::int64_t row = 0; row < dataset.rows; ++row)
    if (!row_is_valid(dataset.input(row), dataset.target(row), dataset.width)) invalid.push_back(row);
  return invalid;
}

std::int64_t drop_invalid_rows(Dataset& dataset) {
  TextTable kept_texts;
  std::int64_t kept = 0;
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    if (!row_is_valid(dataset.input(row), dataset.target(row), dataset.width)) continue;
    std::copy_n(dataset.input(row), dataset.width, dataset.inputs.data() + kept * dataset.width);
    std::copy_n(dataset.target(row), dataset.width, dataset.targets.data() + kept * dataset.width);
    kept_texts.add(dataset.input_text(row));
    kept_texts.add(dataset.target_text(row));
    ++kept;
  }
  const std::int64_t dropped = dataset.rows - kept;
  if (dropped == 0) return 0;
  dataset.inputs.resize(static_cast<std::size_t>(kept * dataset.width));
  dataset.targets.resize(static_cast<std::size_t>(kept * dataset.width));
  dataset.texts = std::move(kept_texts);
  dataset.rows = kept;
  dataset.remarks.push_back(std::to_string(dropped) + " invalid rows dropped");
  return dropped;
}

}  // namespace twinbench
