// Readings before and after a life; the peak needs its own meters.
#include "harness/counters/case_memory.h"

#include "harness/compare/inputs.h"
#include "harness/counters/counter_scope.h"
#include "harness/counters/excused_counts.h"
#include "harness/device/device_allocator.h"
#include "harness/gpu/nvtx_range.h"
#include "harness/memory/tracked_allocator.h"

namespace twinbench {
namespace {

void live_once(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed) {
  const NamedTensors inputs =
      placed_inputs(generated_inputs(component.spec, setting, seed), setting.dtype, setting.device);
  const auto runnable = component.make(variant, inputs, setting);
  runnable->run();
  runnable->outputs();
}

CaseMemory watched_life(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed) {
  CaseMemory memory;
  reset_device_peak(setting.device);
  const auto before = device_allocator_totals(setting.device);
  {
    const CounterScope scope({/*track_devices=*/false});
    live_once(component, variant, setting, seed);
    const CounterSnapshot host = scope.snapshot();
    memory.host = {host.allocations, host.peak_bytes, host.live_bytes};
  }
  const auto after = device_allocator_totals(setting.device);
  if (!after) return memory;
  // Absent before: the case itself started the device, so all that is held now is its own or a library's first use.
  const auto start = before.value_or(DeviceAllocatorTotals{});
  memory.device.emplace();
  memory.device->allocations = after->allocations - start.allocations;
  memory.device->peak_bytes = after->peak_bytes - start.allocated_bytes;
  memory.device->leaked_bytes = after->allocated_bytes - start.allocated_bytes;
  memory.device->reserved_bytes = after->reserved_bytes;
  memory.device->segments = after->segments;
  memory.device->retries = after->retries - start.retries;
  memory.device->out_of_memory = after->out_of_memory - start.out_of_memory;
  return memory;
}

}  // namespace

std::string CaseMemory::leak() const {
  std::string text;
  const auto add = [&](const char* where, std::int64_t bytes) {
    if (bytes == 0) return;
    text += (text.empty() ? "" : "; ") + std::to_string(bytes < 0 ? -bytes : bytes) + " bytes of " + where +
            " memory " + (bytes < 0 ? "that are older than the case are freed by it" : "outlive the case");
  };
  add("host", host.leaked_bytes);
  if (device) add("device", device->leaked_bytes);
  return text;
}

CaseMemory case_memory(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed) {
  const NvtxRange range(Cell{&component, variant, setting.device, setting.dtype, &setting.input_case}.name(), "memory");
  TrackedAllocator::instance();  // before the blocks whose frees will be counted
  const CaseMemory first = watched_life(component, variant, setting, seed);
  if (first.leak().empty()) return first;
  CaseMemory last = watched_life(component, variant, setting, seed);
  constexpr int kLives = 4;
  for (int life = 0; life < kLives && counts_blocks(variant, setting) && !last.leak().empty(); ++life) {
    const std::int64_t before = last.device ? last.device->leaked_bytes : 0;
    last = watched_life(component, variant, setting, seed);
    if (last.device) last.device->leaked_bytes = leaked_in_both(before, last.device->leaked_bytes);
  }
  return last;
}

nlohmann::json to_json(const CaseMemory& memory) {
  const auto common = [](const MemoryUse& use) -> nlohmann::json {
    return {{"allocations", use.allocations}, {"peak_bytes", use.peak_bytes}, {"leaked_bytes", use.leaked_bytes}};
  };
  nlohmann::json json = {{"host", common(memory.host)}, {"device", nullptr}};
  if (!memory.device) return json;
  json["device"] = common(*memory.device);
  json["device"].update({{"reserved_bytes", memory.device->reserved_bytes},
                         {"segments", memory.device->segments},
                         {"retries", memory.device->retries},
                         {"out_of_memory", memory.device->out_of_memory}});
  return json;
}

}  // namespace twinbench
