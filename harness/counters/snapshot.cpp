// Counter lookup by name and readable differences.
#include "harness/counters/snapshot.h"

#include <cstdlib>

#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {

namespace {

constexpr const char* kForwardPrefix = "forward_calls.";

std::int64_t lookup(const std::map<std::string, std::int64_t>& counts, const std::string& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

std::int64_t sum(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

// Of the names that begin like that.
std::int64_t sum_of(const std::map<std::string, std::int64_t>& counts, const std::string& prefix) {
  std::int64_t sum = 0;
  for (const auto& [name, count] : counts) sum += name.rfind(prefix, 0) == 0 ? count : 0;
  return sum;
}

void append_change(std::string& text, const std::string& name, std::int64_t before, std::int64_t after) {
  if (before == after) return;
  text += (text.empty() ? "" : ", ") + name + " " + std::to_string(before) + " -> " + std::to_string(after);
}

}  // namespace

const std::vector<CounterField>& counter_fields() {
  static const std::vector<CounterField> fields = {
      {"dispatches", &CounterSnapshot::dispatches},
      {"scalar_reads", &CounterSnapshot::scalar_reads},
      {"sync_calls", &CounterSnapshot::sync_calls},
      {"copies", &CounterSnapshot::copies},
      {"device_copies", &CounterSnapshot::device_copies},
      {"allocations", &CounterSnapshot::allocations},
      {"allocated_bytes", &CounterSnapshot::allocated_bytes},
      {"peak_bytes", &CounterSnapshot::peak_bytes},
      {"frees", &CounterSnapshot::frees},
      {"live_bytes", &CounterSnapshot::live_bytes},
      {"forward_calls", &CounterSnapshot::forward_calls},
  };
  return fields;
}

const std::vector<CounterMap>& counter_maps() {
  static const std::vector<CounterMap> maps = {
      {"by_name", &CounterSnapshot::by_name},
      {"forward_calls_by_name", &CounterSnapshot::forward_calls_by_name},
      {"launches_by_kernel", &CounterSnapshot::launches_by_kernel},
      {"products_by_shape", &CounterSnapshot::products_by_shape},
      {"process_calls", &CounterSnapshot::process_calls},
      {"layout", &CounterSnapshot::layout},
  };
  return maps;
}

std::int64_t CounterSnapshot::value(const std::string& counter) const {
  for (const auto& [name, member] : counter_fields())
    if (counter == name) return this->*member;
  const std::int64_t graphs = sum_of(launches_by_kernel, kGraphPrefix),
                     captures = sum_of(launches_by_kernel, kCapturePrefix);
  if (counter == "launches") return sum(launches_by_kernel) - graphs - captures;
  if (counter == "graph_launches") return graphs;
  if (counter == "captures") return captures;
  if (counter == "products") return sum(products_by_shape);
  if (counter.rfind(kForwardPrefix, 0) == 0)
    return lookup(forward_calls_by_name, counter.substr(std::string(kForwardPrefix).size()));
  if (counter.find("::") != std::string::npos) return lookup(by_name, counter);
  std::vector<std::string> names;
  for (const auto& field : counter_fields()) names.push_back(field.first);
  throw Error(
      ErrorKind::kUnknownName, "counter", counter,
      "a counter field, forward_calls.<component>, launches, graph_launches, captures, products or an operator such "
      "as aten::add" +
          did_you_mean(counter, names));
}

std::string difference(const CounterSnapshot& before, const CounterSnapshot& after) {
  std::string text;
  for (const auto& [name, member] : counter_fields()) append_change(text, name, before.*member, after.*member);
  for (const auto& [map_name, maps] : counter_maps()) {
    for (const auto& [name, count] : before.*maps) append_change(text, name, count, lookup(after.*maps, name));
    for (const auto& [name, count] : after.*maps)
      if (!(before.*maps).count(name)) append_change(text, name, 0, count);
  }
  return text;
}

CounterSnapshot with_settled_peak(CounterSnapshot measured, const CounterSnapshot& expected) {
  constexpr std::int64_t kShare = 100;
  if (std::abs(measured.peak_bytes - expected.peak_bytes) <= expected.peak_bytes / kShare)
    measured.peak_bytes = expected.peak_bytes;
  return measured;
}

}  // namespace twinbench
