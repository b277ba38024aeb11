// Reading, writing and comparing ci/kernel_counts.json.
#include "harness/simt/counting/counts_file.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "src/common/error.h"
#include "src/formats/file_io.h"

namespace twinbench::kernels::simt {
namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& path, const std::string& value, const std::string& remedy) {
  throw Error(ErrorKind::kBadFile, path, value, remedy);
}

// The counts alone, without the line number of "at".
json without_lines(json counted) {
  if (!counted.is_object()) return counted;
  for (auto entry = counted.begin(); entry != counted.end();)
    entry = entry.key().starts_with(kNoCount) ? counted.erase(entry) : std::next(entry);
  for (auto& kernel : counted)
    if (kernel.is_object() && kernel.contains("worst"))
      for (auto& line : kernel["worst"]) {
        const std::string at = line.value("at", "");
        line["at"] = at.substr(0, at.rfind(':'));
      }
  return counted;
}

void differences(const std::string& where, const json& pinned, const json& counted, std::vector<std::string>& found) {
  if (pinned == counted) return;
  if (pinned.is_object() && counted.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : pinned.items()) keys.insert(key);
    for (const auto& [key, value] : counted.items()) keys.insert(key);
    for (const std::string& key : keys)
      differences(where + " " + key, pinned.value(key, json()), counted.value(key, json()), found);
  } else {
    const auto text = [](const json& value) { return value.is_null() ? std::string("nothing") : value.dump(); };
    found.push_back(where + ": " + text(pinned) + " -> " + text(counted));
  }
}

Reason reason_of(const std::string& path, const json& row) {
  for (const char* key : {"kernel", "bound", "reason"})
    if (!row.is_object() || !row.contains(key) || !row[key].is_string() || row[key].get<std::string>().empty())
      refuse(path, "reasons: " + row.dump(),
             std::string("give each a kernel, a bound and a reason; '") + key + "' is missing");
  const Reason reason{row["kernel"], row["bound"], row["reason"]};
  if (std::find(std::begin(kBoundNames), std::end(kBoundNames), reason.bound) == std::end(kBoundNames))
    refuse(path, "reasons: bound " + reason.bound, "sectors, wavefronts, lanes, repeats, atomics or blocks");
  return reason;
}

}  // namespace

CountsFile CountsFile::load(const std::string& path) {
  CountsFile file;
  std::ifstream stream(path);
  if (!stream) return file;
  json root;
  try {
    root = json::parse(stream);
  } catch (const json::parse_error& error) {
    refuse(path, error.what(), "`twinbench kernels --pin` writes it");
  }
  if (!root.is_object() || !root.value("cells", json()).is_object() || !root.value("reasons", json()).is_array())
    refuse(path, root.dump().substr(0, 80), "an object with cells and reasons");
  for (const auto& [cell, kernels] : root["cells"].items()) {
    if (!kernels.is_object()) refuse(path, cell, "a cell is an object of kernels");
    file.cells_[cell] = kernels;
  }
  for (const json& row : root["reasons"]) {
    const Reason reason = reason_of(path, row);
    for (const Reason& other : file.reasons_)
      if (other.kernel == reason.kernel && other.bound == reason.bound)
        refuse(path, "reasons: " + reason.kernel + " " + reason.bound, "one reason each");
    file.reasons_.push_back(reason);
  }
  return file;
}

void CountsFile::save(const std::string& path) const {
  std::ostringstream stream;
  stream << "{\n \"reasons\": [";
  for (std::size_t i = 0; i < reasons_.size(); ++i)
    stream
        << (i ? ",\n  " : "\n  ")
        << json({{"kernel", reasons_[i].kernel}, {"bound", reasons_[i].bound}, {"reason", reasons_[i].reason}}).dump();
  stream << "\n ],\n \"cells\": {";
  const char* before_cell = "\n";
  for (const auto& [cell, kernels] : cells_) {
    stream << before_cell << "  " << json(cell).dump() << ": {";
    before_cell = ",\n";
    const char* before_kernel = "\n";
    for (const auto& [kernel, counts] : kernels.items()) {
      stream << before_kernel << "   " << json(kernel).dump() << ": " << counts.dump();
      before_kernel = ",\n";
    }
    stream << "}";
  }
  stream << "\n }\n}\n";
  write_file(path, as_bytes(stream.str()));
}

std::vector<std::string> CountsFile::compare(const std::string& cell, const json& counted) const {
  const auto found = cells_.find(cell);
  if (found == cells_.end()) return {cell + " is not pinned; look at its counts, then run `twinbench kernels --pin`"};
  std::vector<std::string> texts;
  differences(cell, without_lines(found->second), without_lines(counted), texts);
  return texts;
}

std::vector<std::string> CountsFile::vanished(const std::map<std::string, json>& counted) const {
  std::vector<std::string> texts;
  for (const auto& [cell, kernels] : cells_)
    if (!counted.count(cell)) texts.push_back(cell + " is pinned but was not counted: coverage only grows");
  return texts;
}

std::vector<std::string> CountsFile::judge(const std::vector<Breach>& breaches, bool complete) const {
  std::vector<std::string> texts;
  std::vector<bool> used(reasons_.size(), false);
  std::set<std::string> told;
  for (const Breach& breach : breaches) {
    bool excused = false;
    for (std::size_t i = 0; i < reasons_.size(); ++i)
      if (reasons_[i].kernel == breach.kernel && reasons_[i].bound == breach.bound) used[i] = excused = true;
    const std::string text = breach.kernel + " breaks the bound on " + breach.bound + " at " + breach.text;
    if (!excused && told.insert(text).second) texts.push_back(text);
  }
  for (std::size_t i = 0; complete && i < reasons_.size(); ++i)
    if (!used[i])
      texts.push_back("the reason for " + reasons_[i].kernel + " " + reasons_[i].bound +
                      " is not needed any more: remove it");
  return texts;
}

}  // namespace twinbench::kernels::simt
