// Reading, writing and judging the pin file.
#include "harness/counters/pins.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/formats/json_text.h"

namespace twinbench {

namespace {

using Json = nlohmann::ordered_json;
Json to_json(const CounterSnapshot& snapshot) {
  Json json;
  for (const auto& [name, field] : counter_fields()) json[name] = snapshot.*field;
  json["by_name"] = Json::object();
  for (const auto& [name, map] : counter_maps())
    if (!(snapshot.*map).empty()) json[name] = snapshot.*map;
  return json;
}

CounterSnapshot from_json(const Json& json, const std::string& cell, const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return Error(ErrorKind::kBadFile, path + " cell " + cell, what,
                 "regenerate it with `twinbench counters --pin --filter '^" + cell + "$'`");
  };
  if (!json.is_object()) throw bad("not an object");
  CounterSnapshot snapshot;
  const auto integer = [&](const std::string& name, const Json& value) {
    if (!value.is_number_integer()) throw bad(name + " is not an integer");
    return value.get<std::int64_t>();
  };
  for (const auto& [name, field] : counter_fields()) {
    if (!json.contains(name)) throw bad("no " + name);
    snapshot.*field = integer(name, json[name]);
  }
  for (const auto& [name, map] : counter_maps()) {
    if (!json.contains(name)) continue;
    if (!json[name].is_object()) throw bad(name + " is not an object");
    for (const auto& [key, value] : json[name].items())
      if (((snapshot.*map)[key] = integer(key, value)) <= 0)
        throw bad(name + "." + key + " is not above 0: it pins nothing");
  }
  return snapshot;
}

// How many regions a library product is cut into is the library's choice by the processor: MKL's on one vendor's is not
// that on another's. Where there are products, regions are taken to be as pinned.
CounterSnapshot without_regions_of_products(CounterSnapshot measured, const CounterSnapshot& pinned) {
  constexpr const char* kRegions = "parallel";
  const auto calls = [&](const char* product) { return measured.by_name.count(product) > 0; };
  if (!calls("aten::mm") && !calls("aten::addmm") && !calls("aten::bmm") && !calls("aten::baddbmm")) return measured;
  measured.process_calls.erase(kRegions);
  if (const auto regions = pinned.process_calls.find(kRegions); regions != pinned.process_calls.end())
    measured.process_calls.insert(*regions);
  return measured;
}

}  // namespace

Pins Pins::load(const std::string& path) {
  Pins pins;
  if (!std::filesystem::exists(path)) return pins;
  const Json json = read_json_file<Json>(path, "pin file", kCounts);
  if (!json.is_object()) throw Error(ErrorKind::kBadFile, "pin file", path, "must be an object: cell name -> counters");
  if (json.contains("twinbench"))
    throw Error(ErrorKind::kBadFile, "pin file", path,
                "a record, not pins: give a file that `twinbench counters --pin` writes, such as ci/counters.json");
  for (const auto& [cell, value] : json.items()) pins.cells_[cell] = from_json(value, cell, path);
  return pins;
}

void Pins::save(const std::string& path) const {
  std::string text = "{";
  const char* separator = "\n";
  for (const auto& [cell, snapshot] : cells_) {
    text += separator + Json(cell).dump() + ": " + to_json(snapshot).dump();
    separator = ",\n";
  }
  write_file(path, as_bytes(text + "\n}\n"));
}

const CounterSnapshot* Pins::find(const std::string& cell) const {
  const auto found = cells_.find(cell);
  return found == cells_.end() ? nullptr : &found->second;
}

PinVerdict Pins::check(const std::string& cell, const CounterSnapshot& measured) const {
  const CounterSnapshot* const pinned = find(cell);
  const std::string command = "`twinbench counters --pin --filter '^" + cell + "$'`";
  if (!pinned) return {false, false, "not pinned; pin it with " + command};
  const bool is_library = cell.find("/library/") != std::string::npos;
  const std::string changed = difference(
      *pinned, without_regions_of_products(is_library ? with_settled_peak(measured, *pinned) : measured, *pinned));
  if (changed.empty()) return {true, true, ""};
  return {false, true, changed + " (pinned -> measured); if this is meant, " + command};
}

}  // namespace twinbench
