// The counters of one region of code: plain exact integers. Torch-free.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace twinbench {

// What names in launches_by_kernel begin with that are no kernel's.
inline constexpr const char* kGraphPrefix = "graph ";
inline constexpr const char* kCapturePrefix = "capture ";

struct CounterSnapshot {
  // Operators, each counted once as the outermost that computes: composites (linear, item) are looked through to what
  // they issue, views and metadata operators are not counted, nor is what a counted operator issues inside itself.
  std::int64_t dispatches = 0;
  std::int64_t scalar_reads = 0;  // tensor -> host scalar (item), wherever it occurs; not in dispatches
  std::int64_t sync_calls = 0;  // scalar reads and calls whose output shape or value the host waits for (nonzero, ...)
  std::int64_t copies = 0;      // copy_, clone, to, contiguous that really copied; not in dispatches
  std::int64_t device_copies = 0;    // those of them whose two sides lie on different devices
  std::int64_t allocations = 0;      // blocks of more than zero bytes asked of the tensor allocators
  std::int64_t allocated_bytes = 0;  // as requested, before rounding; on a card its allocator's blocks
  std::int64_t peak_bytes = 0;       // highest number of bytes live at once, above the level at the start
  std::int64_t frees = 0;
  std::int64_t live_bytes =
      0;  // allocated minus freed: above zero the region kept memory, below it released older memory
  std::int64_t forward_calls = 0;                             // announce_forward_call, all components
  std::map<std::string, std::int64_t> by_name;                // dispatches, copies and reads by operator ("aten::add")
  std::map<std::string, std::int64_t> forward_calls_by_name;  // by component
  // Own kernels by name, on a card or simt, beside them "graph <name>" for each graph that was started and "capture
  // <name>" for each that was recorded; the library's products by shape, on every path that uses `multiply`.
  std::map<std::string, std::int64_t> launches_by_kernel, products_by_shape;
  std::map<std::string, std::int64_t> process_calls;  // see ProcessCallScope; of the optimized variant on the CPU
  // Of variants in LibTorch's operators on the CPU, which could be slow by them at a size where nobody looks. "views":
  // views, metadata and composites, and those that these issue; of the operands of counted ones, "strided": how many do
  // not lie densely in the order of rows, "spanned_bytes": from their first byte to their last, and "each_operand": a
  // sum over 32 bits of the hash of each one's operator, place, sizes and strides.
  std::map<std::string, std::int64_t> layout;

  // By field name ("dispatches"), or "forward_calls.<component>", "launches" (of kernels on their own),
  // "graph_launches", "captures" or "products" (all of them), or an operator's name (0 where it did not run).
  // Throws kUnknownName for anything else.
  std::int64_t value(const std::string& counter) const;

  bool operator==(const CounterSnapshot&) const = default;
};

// The scalar fields in declaration order: the columns of the record and of the pin file.
using CounterField = std::pair<std::string, std::int64_t CounterSnapshot::*>;
const std::vector<CounterField>& counter_fields();

// The counts by name. All but the first are left out of files where they are empty.
using CounterMap = std::pair<std::string, std::map<std::string, std::int64_t> CounterSnapshot::*>;
const std::vector<CounterMap>& counter_maps();

// `measured` with the peak that is expected, where it is a hundredth from it at most: the threads of a library's
// operator take scratch side by side, so that its peak varies by how they meet.
CounterSnapshot with_settled_peak(CounterSnapshot measured, const CounterSnapshot& expected);

// "dispatches 3 -> 4, aten::add 1 -> 2": what differs; empty where nothing does.
std::string difference(const CounterSnapshot& before, const CounterSnapshot& after);

}  // namespace twinbench
