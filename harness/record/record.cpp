// Assembling and writing a record.
#include "harness/record/record.h"

#include <algorithm>
#include <cmath>

#include "harness/record/provenance.h"
#include "harness/record/schema.h"
#include "src/common/error.h"
#include "src/formats/file_io.h"

namespace twinbench {

void make_strict(nlohmann::json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    value = nullptr;
  } else if (value.is_structured()) {
    for (auto& item : value) make_strict(item);
  }
}

Record::Record(const std::string& engine, std::uint64_t seed, const std::string& command_line) {
  read_schema();
  root_["context"] = benchmark_context();
  root_["benchmarks"] = nlohmann::json::array();
  auto& block = root_["twinbench"];
  block["schema_version"] = "1.4";
  block["engines"] = {engine};
  block["provenance"] = provenance(seed, command_line);
  block["session"] = nullptr;
  block["components"] = component_table();
  for (const char* section : {"ceilings", "parity", "counters", "instructions", "proofs", "timings", "speedups",
                              "scenarios", "selftest", "modelled", "timelines"})
    block[section] = nlohmann::json::array();
  block["ledger"] = {{"planned", 0}, {"passed", 0},       {"failed", 0},    {"errors", 0},
                     {"skipped", 0}, {"inconclusive", 0}, {"exit_code", 3}, {"skip_reasons", nlohmann::json::object()}};
}

void Record::add(const std::string& section, nlohmann::json row) {
  make_strict(row);
  root_["twinbench"].at(section).push_back(std::move(row));
}

void Record::add_benchmark(nlohmann::json row) {
  make_strict(row);
  root_["benchmarks"].push_back(std::move(row));
}

void Record::set_threads(int threads) { root_["twinbench"]["provenance"]["threads"] = threads; }

void Record::set_gpu(nlohmann::json card, const std::string& reason) {
  auto& block = root_["twinbench"]["provenance"];
  if (block["driver"].is_null() && card.is_object()) block["driver"] = card.value("driver", nlohmann::json());
  make_strict(card);
  block["gpu"] = std::move(card);
  block["gpu_reason"] = reason;
}

void Record::add_timeline(nlohmann::json row) {
  make_strict(row);
  row["engine"] = root_["twinbench"]["engines"].front();
  auto& rows = root_["twinbench"]["timelines"];
  if (std::find(rows.begin(), rows.end(), row) == rows.end()) rows.push_back(std::move(row));
}

void Record::set_session(nlohmann::json session) {
  make_strict(session);
  root_["twinbench"]["session"] = std::move(session);
}

void Record::set_ledger(nlohmann::json ledger) { root_["twinbench"]["ledger"] = std::move(ledger); }

void Record::write(const std::string& path) const {
  const std::string breaches = schema_breaches(root_);
  if (!breaches.empty()) throw Error(ErrorKind::kInternal, "record", path, "it breaks the schema: " + breaches);
  const std::string text =
      root_.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';  // a path need not be UTF-8
  try {
    make_directory_of(path);
    write_file(path, as_bytes(text));
  } catch (const Error& refused) {
    // Hours may lie in it: it goes where it can, and the run is an error all the same.
    const std::string rescued = TemporaryDirectory().path() + "-record.json";
    try {
      write_file(rescued, as_bytes(text));
    } catch (const Error& also_refused) {
      throw Error(ErrorKind::kInputOutput, "--out", path,
                  std::string(refused.what()) + "; nor could it be saved elsewhere: " + also_refused.what());
    }
    throw Error(ErrorKind::kInputOutput, "--out", path,
                std::string(refused.what()) + "; the record was saved as " + rescued + " instead");
  }
}

}  // namespace twinbench
