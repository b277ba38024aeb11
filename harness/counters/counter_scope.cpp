// A scope is two readings of monotonic totals; only the peak needs a meter of its own.
#include "harness/counters/counter_scope.h"

#include <ATen/Context.h>
#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "harness/counters/operator_counts.h"
#include "harness/device/device_memory.h"
#include "harness/memory/tracked_allocator.h"

namespace twinbench {

struct CounterScope::State {
  OperatorTotals operators;
  AllocationTotals memory;
  int peak_meter = 0;
  std::shared_ptr<DeviceMemoryObserver> device_memory;
  std::unique_ptr<c10::DebugInfoGuard> device_guard;
  bool layouts = false;
};

CounterScope::Settings CounterScope::default_settings() { return {at::globalContext().hasCUDA(), false}; }

CounterScope::CounterScope(Settings settings) : state_(std::make_unique<State>()) {
  TrackedAllocator& allocator = TrackedAllocator::instance();
  state_->peak_meter = allocator.open_peak();
  if (settings.track_devices) {
    state_->device_memory = std::make_shared<DeviceMemoryObserver>();
    state_->device_guard =
        std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE, state_->device_memory);
  }
  state_->layouts = settings.layouts;
  start_operator_counting(settings.track_devices || settings.layouts);
  state_->operators = operator_totals();
  state_->memory = allocator.totals();
}

CounterScope::~CounterScope() {
  stop_operator_counting();
  TrackedAllocator::instance().close_peak(state_->peak_meter);
}

namespace {

std::map<std::string, std::int64_t> since(const std::map<std::string, std::int64_t>& start,
                                          const std::map<std::string, std::int64_t>& now) {
  std::map<std::string, std::int64_t> counts;
  for (const auto& [name, count] : now) {
    const auto before = start.find(name);
    const std::int64_t change = count - (before == start.end() ? 0 : before->second);
    if (change != 0) counts[name] = change;
  }
  return counts;
}

}  // namespace

CounterSnapshot CounterScope::snapshot() const {
  TrackedAllocator& allocator = TrackedAllocator::instance();
  const AllocationTotals memory = allocator.totals();
  const OperatorTotals operators = operator_totals();
  CounterSnapshot result;
  result.dispatches = operators.dispatches - state_->operators.dispatches;
  result.scalar_reads = operators.scalar_reads - state_->operators.scalar_reads;
  result.sync_calls = operators.sync_calls - state_->operators.sync_calls;
  result.copies = operators.copies - state_->operators.copies;
  result.device_copies = operators.device_copies - state_->operators.device_copies;
  result.allocations = memory.allocations - state_->memory.allocations;
  result.allocated_bytes = memory.allocated_bytes - state_->memory.allocated_bytes;
  result.frees = memory.frees - state_->memory.frees;
  result.live_bytes = memory.live_bytes - state_->memory.live_bytes;
  result.peak_bytes = allocator.peak(state_->peak_meter) - state_->memory.live_bytes;
  if (const auto& device = state_->device_memory) {
    result.allocations += device->allocations;
    result.allocated_bytes += device->allocated_bytes;
    result.frees += device->frees;
    result.live_bytes += device->live;
    result.peak_bytes += device->peak;  // the two peaks need not coincide: an upper bound
  }
  result.by_name = since(state_->operators.by_name, operators.by_name);
  result.forward_calls_by_name = since(state_->operators.forward_calls, operators.forward_calls);
  result.launches_by_kernel = since(state_->operators.launches, operators.launches);
  result.products_by_shape = since(state_->operators.products, operators.products);
  for (const auto& [name, count] : result.forward_calls_by_name) result.forward_calls += count;
  if (state_->layouts) result.layout = since(state_->operators.layout, operators.layout);
  return result;
}

DispatcherCost measure_dispatcher_cost() {
  constexpr int kRounds = 9, kCalls = 2000;
  at::Tensor out = at::ones({8}), left = at::ones({8}), right = at::ones({8});
  const auto median_ns = [&] {
    std::array<double, kRounds> rounds{};
    for (double& round : rounds) {
      const auto start = std::chrono::steady_clock::now();
      for (int call = 0; call < kCalls; ++call) at::add_out(out, left, right);
      round = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kCalls;
    }
    std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
    return rounds[kRounds / 2];
  };
  median_ns();  // warms caches and the clock
  DispatcherCost cost;
  cost.plain_ns = median_ns();
  const CounterScope scope;
  cost.counted_ns = median_ns();
  return cost;
}

}  // namespace twinbench
