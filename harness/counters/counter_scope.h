// Counts what LibTorch is asked to do while a scope is open: operators, reads, copies, allocations, forward calls.
#pragma once

#include <cstdint>
#include <memory>

#include "harness/counters/snapshot.h"

namespace twinbench {

// Everything on every thread of the process from construction to destruction. Scopes may nest; each counts for itself.
// Exact, so counting and timing are separate passes: an operator costs about 100 ns more under a scope.
// Memory: the CPU allocator wrapper is installed by the first scope and stays; open an early scope (or call
// TrackedAllocator::instance()) before the objects whose frees are to be counted are made.
class CounterScope {
 public:
  struct Settings {
    // Look at the tensors of copies to tell device copies, and count device memory. Costs 100-200 ns an operator.
    bool track_devices = false;
    bool layouts = false;  // counts views, and looks at how operands lie; costs as much
  };
  static Settings default_settings();  // devices are tracked where the process has CUDA
  CounterScope() : CounterScope(default_settings()) {}
  explicit CounterScope(Settings settings);
  ~CounterScope();
  CounterScope(const CounterScope&) = delete;
  CounterScope& operator=(const CounterScope&) = delete;

  // What happened since construction.
  CounterSnapshot snapshot() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Cost of one small operator call without and with an open scope, in nanoseconds (median of several rounds).
struct DispatcherCost {
  double plain_ns = 0, counted_ns = 0;
};
DispatcherCost measure_dispatcher_cost();

}  // namespace twinbench
