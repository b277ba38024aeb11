// Reading, writing and comparing ci/kernel_counts.json.
#include "harness/simt/counting/counts_file.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/formats/json_text.h"
#include "src/formats/text_file.h"

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
      for (auto& line : kernel["worst"])
        if (line.is_object() && line.contains("at") && line["at"].is_string()) {
          const auto at = line["at"].get<std::string>();
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

bool is_sentence(const std::string& text) {
  return std::count(text.begin(), text.end(), ' ') >= 4 && text.back() == '.';
}

// Of a key that may be missing; what is no text is none.
std::string text_of(const json& row, const char* key) {
  return row.contains(key) && row[key].is_string() ? row[key].get<std::string>() : std::string();
}

// Not of a line; of a cost, of a whole component.
bool is_of_whole_kernel(const std::string& bound) {
  return bound != "sectors" && bound != "wavefronts" && bound != "lanes" && bound != "atomics";
}

Reason reason_of(const std::string& path, const json& row) {
  for (const char* key : {"kernel", "bound", "reason"})
    if (!row.is_object() || !row.contains(key) || !row[key].is_string())
      refuse(path, "reasons: " + row.dump(),
             std::string("give each a kernel, a bound, a limit and a reason; '") + key + "' is missing");
  if (!row.contains("limit") || !row["limit"].is_number())
    refuse(path, "reasons: " + row.dump(), "give the counted figure as its limit");
  const Reason reason{.kernel = row["kernel"],
                      .bound = row["bound"],
                      .file = text_of(row, "file"),
                      .line = text_of(row, "line"),
                      .limit = row["limit"],
                      .reason = row["reason"]};
  if (std::find(std::begin(kBoundNames), std::end(kBoundNames), reason.bound) == std::end(kBoundNames))
    refuse(path, "reasons: bound " + reason.bound,
           "sectors, wavefronts, lanes, repeats, atomics, blocks, arithmetic, bytes or roof");
  const bool of_whole_kernel = is_of_whole_kernel(reason.bound);
  if (reason.file.empty() != of_whole_kernel || reason.line.empty() != of_whole_kernel)
    refuse(path, "reasons: " + row.dump(),
           of_whole_kernel ? "this bound is one of the whole kernel: leave out file and line"
                           : "name the file, and a part of the line's text");
  if (!is_sentence(reason.reason)) refuse(path, "reasons: reason " + reason.reason, "a sentence that says why");
  return reason;
}

json json_of(const Reason& reason) {
  json row = {{"kernel", reason.kernel}, {"bound", reason.bound}, {"limit", reason.limit}, {"reason", reason.reason}};
  if (!reason.file.empty()) row.update({{"file", reason.file}, {"line", reason.line}});
  return row;
}

bool same_place(const Reason& a, const Reason& b) {
  return a.kernel == b.kernel && a.bound == b.bound && a.file == b.file && a.line == b.line;
}

// The text of "kernels/.../kernel.h:31"; empty where there is none.
std::string source_line(const std::string& at) {
  const auto lines = lines_if_any(at.substr(0, at.rfind(':')), "source of a kernel");
  const long line = std::strtol(at.c_str() + at.rfind(':') + 1, nullptr, 10);
  return line >= 1 && line <= static_cast<long>(lines.size()) ? lines[static_cast<std::size_t>(line - 1)] : "";
}

bool speaks_of(const Reason& reason, const Breach& breach) {
  if (reason.kernel != breach.kernel || reason.bound != breach.bound) return false;
  if (breach.at.empty()) return true;
  return reason.file == breach.at.substr(0, breach.at.rfind(':')) &&
         source_line(breach.at).find(reason.line) != std::string::npos;
}

// The limit that a reason for this figure states.
double limit_of(const std::string& bound, double figure) {
  return more_is_worse(bound) ? std::ceil(100 * figure - 1e-6) / 100 : std::floor(100 * figure + 1e-6) / 100;
}

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

}  // namespace

CountsFile CountsFile::load(const std::string& path) {
  CountsFile file;
  if (!std::filesystem::exists(path)) return file;
  const json root = read_json_file(path, "pinned counts", kCounts);
  if (!root.is_object() || !root.value("cells", json()).is_object() || !root.value("reasons", json()).is_array())
    refuse(path, root.dump().substr(0, 80), "an object with cells and reasons");
  for (const auto& [cell, kernels] : root["cells"].items()) {
    if (!kernels.is_object()) refuse(path, cell, "a cell is an object of kernels");
    file.cells_[cell] = kernels;
  }
  for (const json& row : root["reasons"]) {
    const Reason reason = reason_of(path, row);
    for (const Reason& other : file.reasons_)
      if (same_place(other, reason))
        refuse(path, "reasons: " + reason.kernel + " " + reason.bound + " " + reason.line, "one reason each");
    file.reasons_.push_back(reason);
  }
  return file;
}

void CountsFile::save(const std::string& path) const {
  std::ostringstream stream;
  stream << "{\n \"reasons\": [";
  for (std::size_t i = 0; i < reasons_.size(); ++i) stream << (i ? ",\n  " : "\n  ") << json_of(reasons_[i]).dump();
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

std::size_t CountsFile::drop_others(const std::set<std::string>& existing) {
  return std::erase_if(cells_, [&](const auto& entry) { return !existing.count(entry.first); });
}

std::vector<std::string> CountsFile::judge(const std::vector<Breach>& breaches, bool complete) const {
  std::vector<std::string> texts;
  std::vector<double> needed(reasons_.size(), NAN);  // the worst that each reason is asked to excuse
  std::set<std::string> told;
  for (const Breach& breach : breaches) {
    std::string text = breach.kernel + " breaks the bound on " + breach.bound + " at " + breach.text;
    const double limit = limit_of(breach.bound, breach.figure);
    bool excused = false;
    for (std::size_t i = 0; i < reasons_.size(); ++i) {
      if (!speaks_of(reasons_[i], breach)) continue;
      const bool more = more_is_worse(breach.bound);
      if (!(more ? needed[i] >= limit : needed[i] <= limit)) needed[i] = limit;
      if (more ? limit <= reasons_[i].limit + 1e-9 : limit >= reasons_[i].limit - 1e-9)
        excused = true;
      else
        text += "; its reason allows " + two_digits(reasons_[i].limit);
    }
    if (!excused && told.insert(text).second) texts.push_back(text);
  }
  for (std::size_t i = 0; complete && i < reasons_.size(); ++i) {
    const Reason& reason = reasons_[i];
    const std::string name = "the reason for " + reason.kernel + " " + reason.bound + " " + reason.line;
    if (std::isnan(needed[i]))
      texts.push_back(name + " is not needed any more: remove it");
    else if (std::abs(needed[i] - reason.limit) > 1e-9 && more_is_worse(reason.bound) == (needed[i] < reason.limit))
      texts.push_back(name + " allows " + two_digits(reason.limit) + ", counted are " + two_digits(needed[i]) +
                      ": say so");
  }
  return texts;
}

}  // namespace twinbench::kernels::simt
