// Writing comparisons, samples and the A/A test as JSON.
#include "harness/timing/record.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/timing/statistics.h"

namespace twinbench {
namespace {

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(nullptr); }

void add_interval(const PairedResult& result, nlohmann::json& row) {
  row["ratio"] = result.pairs > 0 ? number(result.ratio) : nlohmann::json(nullptr);
  row["lower"] = result.interval ? number(result.interval->lower) : nlohmann::json(nullptr);
  row["upper"] = result.interval ? number(result.interval->upper) : nlohmann::json(nullptr);
  row["n"] = result.n;
}

}  // namespace

nlohmann::json speedup_fields(const PairedResult& result) {
  nlohmann::json row;
  add_interval(result, row);
  row["confidence"] = result.confidence;
  row["verdict"] = name_of(result.verdict);
  row["reason"] = result.explanation();
  row["autocorrelation"] = result.autocorrelation ? number(*result.autocorrelation) : nlohmann::json(nullptr);
  row["log_ratios"] = result.log_ratios;
  return row;
}

nlohmann::json timing_fields(std::span<const double> samples_s) {
  const Quartiles q = quartiles(samples_s);
  return {{"n", samples_s.size()},
          {"median_s", q.median},
          {"q1_s", q.first},
          {"q3_s", q.third},
          {"minimum_s", *std::min_element(samples_s.begin(), samples_s.end())},
          {"samples_s", std::vector<double>(samples_s.begin(), samples_s.end())}};
}

nlohmann::json to_json(const NullTest& test) {
  nlohmann::json cells = nlohmann::json::array();
  for (const NullCell& cell : test.cells) {
    nlohmann::json row = {{"cell", cell.cell}};
    add_interval(cell.result, row);
    cells.push_back(std::move(row));
  }
  return {{"verdict", name_of(test.verdict)},
          {"pairs", test.pairs},
          {"cells", std::move(cells)},
          {"noise_floor", test.pairs > 0 ? number(test.noise_floor) : nlohmann::json(nullptr)},
          {"reason", test.reason}};
}

}  // namespace twinbench
