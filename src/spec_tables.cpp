// Reading of spec.json.
#include "src/spec_tables.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "src/common/nearest_name.h"

namespace twinbench {
namespace {

using nlohmann::json;

class TableReader {
 public:
  explicit TableReader(ComponentSpec& spec)
      : spec_(spec), file_("src/" + spec.pipeline + "/" + spec.name + "/spec.json") {}

  void read(const std::string& text) {
    if (text.empty() && spec_.summary.empty())
      throw Error(ErrorKind::kBadFile, file_, "missing",
                  "write it beside spec.cpp: src/spec_tables.h says what it holds");
    if (text.empty()) return;
    try {
      read(json::parse(text));
    } catch (const json::exception& error) {
      throw Error(ErrorKind::kBadFile, file_ + (at_.empty() ? "" : ": " + at_), "not what spec.json holds",
                  error.what());
    }
  }

 private:
  void read(const json& tables) {
    check_keys("", tables,
               {"summary", "source", "sin", "no_library", "unordered_on_card", "library_limits", "runs_ahead",
                "host_work", "regime", "batch_size", "dtypes", "sizes", "options", "no_output_shows", "card_limits",
                "cases", "specimens", "proof", "claims"});
    take(tables, "summary", spec_.summary);
    take(tables, "source", spec_.source);
    take(tables, "sin", spec_.sin);
    take(tables, "no_library", spec_.no_library);
    take(tables, "unordered_on_card", spec_.unordered_on_card);
    take(tables, "library_limits", spec_.library_limits);
    take(tables, "runs_ahead", spec_.runs_ahead);
    take(tables, "host_work", spec_.host_work);
    take(tables, "regime", spec_.regime);
    take(tables, "batch_size", spec_.batch_size);
    if (tables.contains("dtypes")) spec_.dtypes.clear();
    for (const auto& name : part(tables, "dtypes")) spec_.dtypes.push_back(dtype(name));
    for (const auto& size : part(tables, "sizes")) spec_.signature.sizes.push_back(read_size(size));
    for (const auto& option : part(tables, "options")) {
      if (option.contains("like"))
        take_options(option);
      else
        spec_.signature.options.push_back(read_option(option));
    }
    for (const auto& limit : part(tables, "card_limits")) spec_.card_limits.push_back(read_card_limit(limit));
    if (tables.contains("cases")) read_cases(tables["cases"]);
    check_cards();
    at_ = "proof";
    read_proof(tables.value("proof", json::object()));
    for (const auto& claim : part(tables, "claims")) spec_.claims.push_back(read_claim(claim));
  }

  // Of what is said of cards: variants and cases that there are.
  void check_cards() const {
    for (const auto& [variant, why] : spec_.unordered_on_card)
      if (variant != "baseline" && variant != "library")
        throw Error(ErrorKind::kUnknownName, file_ + ": unordered_on_card", variant, "it is baseline or library");
    for (const auto& [name, why] : spec_.library_limits)
      if (name != "held_out" &&  // the case of drawn sizes
          std::none_of(spec_.cases.begin(), spec_.cases.end(), [&](const Case& one) { return one.name == name; }))
        throw Error(ErrorKind::kUnknownName, file_ + ": library_limits", name, "no such case");
  }

  json part(const json& tables, const char* key) {
    at_ = key;
    return tables.value(key, json::array());
  }

  void check_keys(const std::string& where, const json& entry, const std::vector<std::string>& known) const {
    for (const auto& [key, value] : entry.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw Error(ErrorKind::kUnknownName, file_ + (where.empty() ? "" : ": " + where), key,
                    "no such key" + did_you_mean(key, known));
  }

  template <class Value>
  void take(const json& entry, const char* key, Value& into) {
    at_ = within_ + key;
    if (entry.contains(key)) entry.at(key).get_to(into);
  }

  Dtype dtype(const std::string& name) const {
    for (const Dtype one : {Dtype::kFp32, Dtype::kBf16, Dtype::kTf32, Dtype::kFp16})
      if (to_string(one) == name) return one;
    throw Error(ErrorKind::kUnknownName, file_ + ": dtypes", name, "there are fp32, bf16, tf32 and fp16");
  }

  SizeSpec read_size(const json& entry) const {
    SizeSpec size{entry.at(0).get<std::string>()};
    if (entry.size() > 1) size.low = entry[1].get<std::int64_t>();
    if (entry.size() > 2) size.high = entry[2].get<std::int64_t>();
    if (entry.size() > 3) size.part_of = entry[3].get<std::string>(), size.least = entry.at(4).get<std::int64_t>();
    return size;
  }

  OptionSpec read_option(const json& entry) const {
    check_keys("options", entry, {"switch", "count", "real", "default", "range", "meaning", "of_inputs"});
    const std::string kind = entry.contains("switch") ? "switch" : entry.contains("count") ? "count" : "real";
    const auto name = entry.at(kind).get<std::string>(), meaning = entry.at("meaning").get<std::string>();
    OptionSpec option;
    if (kind == "switch") {
      option = switch_option(name, entry.at("default").get<bool>(), meaning);
    } else {
      const auto otherwise = entry.at("default").get<double>();
      const auto low = entry.at("range").at(0).get<double>(), high = entry.at("range").at(1).get<double>();
      option = kind == "count" ? count_option(name, entry.at("default").get<std::int64_t>(), low, high, meaning)
                               : real_option(name, otherwise, low, high, meaning);
    }
    return entry.value("of_inputs", false) ? of_inputs(option) : option;
  }

  // As the component that defines them says: kind and range are its own, the default and the meaning of one may differ.
  void take_options(const json& entry) {
    check_keys("options", entry, {"like", "take", "default", "meaning"});
    const auto other = entry.at("like").get<std::string>();
    const std::string text = spec_text(other);
    if (text.empty())
      throw Error(ErrorKind::kUnknownName, file_ + ": options: like", other, "no component of that name has a table");
    const auto names = entry.at("take").get<std::vector<std::string>>();
    if (names.size() != 1 && entry.size() > 2)
      throw Error(ErrorKind::kBadFile, file_ + ": options: like " + other, std::to_string(names.size()) + " options",
                  "take one alone where its default or meaning differs");
    std::map<std::string, json> defined;
    for (const auto& option : json::parse(text).value("options", json::array()))
      for (const char* kind : {"switch", "count", "real"})
        if (option.contains(kind)) defined[option[kind].get<std::string>()] = option;
    for (const auto& name : names) {
      if (!defined.count(name))
        throw Error(ErrorKind::kUnknownName, file_ + ": options: like " + other, name,
                    "it defines no such option itself" + did_you_mean(name, keys_of(defined)));
      json option = defined[name];
      for (const char* key : {"default", "meaning"})
        if (entry.contains(key)) option[key] = entry[key];
      spec_.signature.options.push_back(read_option(option));
    }
  }

  static std::vector<std::string> keys_of(const std::map<std::string, json>& entries) {
    std::vector<std::string> keys;
    for (const auto& [key, entry] : entries) keys.push_back(key);
    return keys;
  }

  CardLimit read_card_limit(const json& entry) const {
    check_keys("card_limits", entry, {"of", "most", "pass", "meaning"});
    CardLimit limit{expression(entry.at("of").get<std::string>()), entry.at("most").get<std::int64_t>(), std::nullopt,
                    entry.at("meaning").get<std::string>()};
    if (entry.contains("pass")) limit.pass = pass(entry["pass"].get<std::string>());
    return limit;
  }

  Expression expression(const std::string& text) const {
    try {
      return Expression(text);
    } catch (const Error& error) {
      throw Error(ErrorKind::kBadFile, file_ + ": " + at_, text, error.what());
    }
  }

  Pass pass(const std::string& name) const {
    if (name == "forward") return Pass::kForward;
    if (name == "backward") return Pass::kBackward;
    throw Error(ErrorKind::kUnknownName, file_ + (at_.empty() ? "" : ": " + at_), name,
                "there are forward and backward");
  }

  void read_cases(const json& table) {
    at_ = "cases";
    check_keys("cases", table, {"order", "list"});
    const auto order = table.at("order").get<std::vector<std::string>>();
    for (const auto& entry : table.at("list")) {
      Case one;
      within_ = "a case: ";
      take(entry, "name", one.name);
      at_ = within_ = "case " + one.name + ": ";
      check_keys(
          "case " + one.name, entry,
          {"name", "sizes", "options", "distribution", "pass", "degenerate", "fixed", "timed", "specimen", "note"});
      std::vector<std::int64_t> lengths;
      take(entry, "sizes", lengths);
      if (lengths.size() != order.size())
        throw Error(ErrorKind::kBadFile, file_ + ": case " + one.name, std::to_string(lengths.size()) + " sizes",
                    "give one for each of the " + std::to_string(order.size()) + " symbols in \"order\"");
      for (std::size_t i = 0; i < order.size(); ++i) one.sizes[order[i]] = lengths[i];
      take(entry, "options", one.options);
      take(entry, "distribution", one.distribution);
      at_ = within_ + "pass";
      one.pass = pass(entry.value("pass", "forward"));
      take(entry, "degenerate", one.degenerate);
      take(entry, "fixed", one.fixed);
      take(entry, "timed", one.timed);
      take(entry, "specimen", one.specimen);
      spec_.cases.push_back(std::move(one));
    }
    within_.clear();
  }

  void read_proof(const json& words) {
    std::vector<std::string> counters;
    for (auto& proof : spec_.proof) {
      counters.push_back(proof.counter);
      within_ = "proof: ";
      take(words, proof.counter.c_str(), proof.formula);
    }
    within_.clear();
    check_keys("proof", words, counters);
  }

  Claim read_claim(const json& entry) const {
    // With "row" it is a row of the specifications' claims ledger; the keys after it are for the reports.
    check_keys("claims", entry,
               {"document", "text", "figure", "ratio", "verdict", "row", "place", "recomputed", "instead", "measures"});
    Claim claim{entry.at("document").get<std::string>(), entry.at("text").get<std::string>(), entry.value("figure", ""),
                std::nullopt, entry.at("verdict").get<std::string>()};
    if (entry.contains("ratio")) claim.ratio = entry["ratio"].get<double>();
    return claim;
  }

  ComponentSpec& spec_;
  const std::string file_;
  std::string within_, at_;  // the entry that is read, for messages
};

}  // namespace

void read_tables(ComponentSpec& spec, const std::string& text) { TableReader(spec).read(text); }

}  // namespace twinbench
