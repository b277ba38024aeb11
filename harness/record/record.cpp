// Assembling, validating (Valijson) and writing a record.
#include "harness/record/record.h"

#include <algorithm>
#include <cmath>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "harness/record/provenance.h"
#include "harness/record/schema_text.h"
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
  root_["context"] = benchmark_context();
  root_["benchmarks"] = nlohmann::json::array();
  auto& block = root_["twinbench"];
  block["schema_version"] = "1.3";
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

std::string schema_breaches(const nlohmann::json& record) {
  static const valijson::Schema* schema = [] {
    auto* parsed = new valijson::Schema;  // lives as long as the program
    static const nlohmann::json text = nlohmann::json::parse(kRecordSchemaText);
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), *parsed);
    return parsed;
  }();
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(*schema, valijson::adapters::NlohmannJsonAdapter(record), &results)) return "";
  std::string breaches;
  valijson::ValidationResults::Error error;
  for (int shown = 0; shown < 6 && results.popError(error); ++shown) {
    std::string place;
    for (const auto& part : error.context) place += part;
    breaches += (breaches.empty() ? "" : "; ") + place + ": " + error.description;
  }
  return breaches;
}

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
