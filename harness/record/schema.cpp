// Validation by Valijson.
#include "harness/record/schema.h"

#include <unistd.h>

#include <new>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

#include "harness/ledger/ledger.h"  // exit codes
#include "harness/record/schema_text.h"

namespace twinbench {

namespace {

// While Valijson reads a schema: it asks for memory by operator new(nothrow) and uses what it gets, null or not. A
// handler that threw would be that same null.
class MemoryEndsByName {
 public:
  MemoryEndsByName() : before_(std::set_new_handler(end)) {}
  ~MemoryEndsByName() { std::set_new_handler(before_); }
  MemoryEndsByName(const MemoryEndsByName&) = delete;
  MemoryEndsByName& operator=(const MemoryEndsByName&) = delete;

 private:
  static void end() {
    constexpr char kTold[] = "twinbench: out_of_memory: host memory ran out at the record's schema: free some\n";
    const auto written = ::write(STDERR_FILENO, kTold, sizeof kTold - 1);
    static_cast<void>(written);  // where nobody listens, the exit code says it
    ::_exit(kExitUsage);
  }
  const std::new_handler before_;
};

const valijson::Schema& schema() {
  static const valijson::Schema* const kept = [] {
    static const nlohmann::json text = nlohmann::json::parse(kRecordSchemaText);
    const MemoryEndsByName guard;
    auto* parsed = new valijson::Schema;  // lives as long as the program
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), *parsed);
    return parsed;
  }();
  return *kept;
}

}  // namespace

void read_schema() { (void)schema(); }

std::string schema_breaches(const nlohmann::json& record) {
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema(), valijson::adapters::NlohmannJsonAdapter(record), &results)) return "";
  std::string breaches;
  valijson::ValidationResults::Error error;
  for (int shown = 0; shown < 6 && results.popError(error); ++shown) {
    std::string place;
    for (const auto& part : error.context) place += part;
    breaches += (breaches.empty() ? "" : "; ") + place + ": " + error.description;
  }
  return breaches;
}

}  // namespace twinbench
