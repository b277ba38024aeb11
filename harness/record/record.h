// One result file: Google Benchmark's JSON with Twinbench's sections beside it. Built by the engines, validated against
// reports/schema/record.v1.schema.json when it is written, whole or not at all.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

namespace twinbench {

class Record {
 public:
  // `engine` is the subcommand that measures; `seed` and `command_line` go into the provenance.
  Record(const std::string& engine, std::uint64_t seed, const std::string& command_line);

  // Appends a row to a section of the "twinbench" block: parity, counters, proofs, timings, speedups, scenarios,
  // selftest, modelled, ceilings. Floating NaN or Inf becomes null (strict JSON).
  void add(const std::string& section, nlohmann::json row);
  // Appends a Google Benchmark row.
  void add_benchmark(nlohmann::json row);
  void set_threads(int threads);  // of the children that measured
  // The card's facts into the provenance, or null with the reason.
  void set_gpu(nlohmann::json card, const std::string& reason);
  // {"samples", "reason", "jobs"}: the card while this engine's jobs ran. The same row twice is kept once.
  void add_timeline(nlohmann::json row);
  void set_session(nlohmann::json session);
  void set_ledger(nlohmann::json ledger);

  const nlohmann::json& json() const { return root_; }
  // Validates, then writes atomically (temporary file, rename). Throws Error(kInternal) naming the JSON path that
  // breaks the schema, or Error(kInputOutput): the record then lies in the system's temporary folder, under a name that
  // the message tells. Leaves no partial file.
  void write(const std::string& path) const;

 private:
  nlohmann::json root_;
};

// Replaces every NaN and Inf by null: JSON has no token for them.
void make_strict(nlohmann::json& value);

}  // namespace twinbench
