// Reading and judging one criterion.
#include "scenarios/runner/criterion.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "scenarios/runner/keys.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {

namespace {

constexpr double kUnlimited = 1e15;     // no limit is farther from 0
constexpr double kMostMeasured = 1e12;  // a terabyte, a million million operators: what is counted ends far below

}  // namespace

Criterion read_criterion(const YAML::Node& node, const std::string& where) {
  std::vector<Key> keys = {text_key("measure", "the name of what is measured"), text_key("why", "one phrase")};
  for (const char* name : {"equals", "at_least", "at_most"})
    keys.push_back(real_key(name, -kUnlimited, kUnlimited, "a limit that can be missed").or_else(0));
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

std::string Criterion::says_nothing(Values values) const {
  if (values == Values::kAny) return "";
  const double most = values == Values::kShare ? 1 : kMostMeasured;
  const double limit = equals ? *equals : at_least ? *at_least : *at_most;
  if (limit < 0 || limit > most)
    return "no value is on the other side of it: they go from 0 up to " + std::string(most == 1 ? "1" : "1e12 at most");
  if (at_least && limit == 0) return "every value meets it: none is below 0";
  if (at_most && limit == most) return "every value meets it: none is above " + std::string(most == 1 ? "1" : "1e12");
  if (at_most && limit > 1 && values == Values::kErrorRatio)
    return "it is looser than the tolerance, which is met up to 1";
  if (at_least && limit < 1 && values == Values::kTolerances)
    return "what comes to less than one tolerance is swallowed by it: give at least 1";
  return "";
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
