// Reading and judging one criterion.
#include "scenarios/runner/criterion.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "scenarios/runner/keys.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {

Criterion read_criterion(const YAML::Node& node, const std::string& where) {
  constexpr double kUnlimited = 1e300;
  std::vector<Key> keys = {text_key("measure", "the name of what is measured"), text_key("why", "one phrase")};
  for (const char* name : {"equals", "at_least", "at_most"})
    keys.push_back(real_key(name, -kUnlimited, kUnlimited, "a finite limit").or_else(0));
  const auto values = read_keys(node, where, keys);
  Criterion criterion;
  criterion.measure = values["measure"];
  criterion.why = values["why"];
  int limits = 0;
  for (auto [name, limit] :
       {std::pair{"equals", &criterion.equals}, {"at_least", &criterion.at_least}, {"at_most", &criterion.at_most}}) {
    if (!node[name]) continue;
    *limit = values[name].get<double>();
    ++limits;
  }
  if (limits != 1)
    throw Error(ErrorKind::kOutOfRange, where, std::to_string(limits) + " limits",
                "give exactly one of equals, at_least, at_most");
  return criterion;
}

std::string Criterion::limit() const {
  std::ostringstream text;
  if (equals) text << "= " << *equals;
  if (at_least) text << ">= " << *at_least;
  if (at_most) text << "<= " << *at_most;
  return text.str();
}

bool Criterion::holds(double value) const {
  // Accepting comparisons, so that NaN never passes.
  return (equals && value == *equals) || (at_least && value >= *at_least) || (at_most && value <= *at_most);
}

nlohmann::json judge(const Criterion& criterion, const Measures& measures) {
  const auto found = measures.find(criterion.measure);
  if (found == measures.end()) {
    std::vector<std::string> names;
    for (const auto& entry : measures) names.push_back(entry.first);
    throw Error(ErrorKind::kUnknownName, "criteria: measure", criterion.measure,
                "the run measured no such thing" + did_you_mean(criterion.measure, names));
  }
  const auto& measure = found->second;
  nlohmann::json row = {{"name", criterion.measure + " " + criterion.limit()},
                        {"verdict", "skip"},
                        {"reason", measure.reason},
                        {"measured", nullptr},
                        {"limit", criterion.limit()}};
  if (!measure.value) return row;
  const bool holds = criterion.holds(*measure.value);
  row["measured"] = *measure.value;
  row["verdict"] = holds ? "pass" : "fail";
  row["reason"] = holds ? criterion.why : "expected: " + criterion.why;
  if (!holds && !measure.reason.empty()) row["reason"] = row["reason"].get<std::string>() + "; " + measure.reason;
  return row;
}

}  // namespace twinbench
