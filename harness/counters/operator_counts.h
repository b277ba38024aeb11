// The process-wide operator totals behind CounterScope: one RecordFunction callback, monotonic counters.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace twinbench {

struct OperatorTotals {
  std::int64_t dispatches = 0, scalar_reads = 0, sync_calls = 0, copies = 0, device_copies = 0;
  std::map<std::string, std::int64_t> by_name;
  std::map<std::string, std::int64_t> forward_calls;
  std::map<std::string, std::int64_t> launches, products;  // of the CUDA path, by kernel and by shape
  std::map<std::string, std::int64_t> layout;              // of operands only where these are looked at
};

// Reference-counted: the callback exists while at least one caller holds it.
void start_operator_counting(bool look_at_operands);
void stop_operator_counting();
OperatorTotals operator_totals();

}  // namespace twinbench
