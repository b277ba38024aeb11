// RecordFunction callback: classifies each operator once, then counts with relaxed atomics.
#include "harness/counters/operator_counts.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "harness/counters/operator_kind.h"
#include "src/common/device_event.h"
#include "src/common/error.h"
#include "src/common/forward_call.h"

namespace twinbench {

namespace {

struct Operator {
  std::string name;
  OperatorClass classification;
  std::atomic<std::int64_t> count{0};
  std::uint64_t hash = 0;  // of the name
};

struct Counts {
  std::atomic<std::int64_t> dispatches{0}, scalar_reads{0}, sync_calls{0}, copies{0}, device_copies{0};
  std::atomic<std::int64_t> views{0}, strided{0}, spanned_bytes{0}, each_operand{0};
  std::mutex mutex;                // of all below
  std::deque<Operator> operators;  // addresses stay valid
  std::unordered_map<const void*, Operator*> by_schema;
  std::map<std::string, std::int64_t> forward_calls, launches, products;
  int holders = 0;
  at::CallbackHandle callback = at::INVALID_CALLBACK_HANDLE;
};

Counts& counts() {
  static Counts* const instance = new Counts();  // threads may outlive static destruction
  return *instance;
}

// The operators that are running on this thread. RecordFunction nests strictly per thread.
struct Running {
  std::vector<std::uint8_t> flags;  // per open call: bit 0 counted, bit 1 synchronising
  int counted = 0, synchronising = 0;
  std::unordered_map<const void*, Operator*> cache;
};

Running& running() {
  thread_local Running instance;
  return instance;
}

// FNV-1a, of whole numbers.
std::uint64_t mixed(std::uint64_t hash, std::int64_t value) {
  return (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001b3U;
}

// The characters of a schema's name belong to that one overload, so their address identifies it.
Operator& lookup(const at::RecordFunction& function) {
  const void* const key = function.name();
  Operator*& cached = running().cache[key];
  if (cached) return *cached;
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  Operator*& known = all.by_schema[key];
  if (!known) {
    known = &all.operators.emplace_back();
    known->name = function.name();
    for (const char letter : known->name) known->hash = mixed(known->hash, letter);
    if (const auto name = function.operator_name())
      if (const auto handle = c10::Dispatcher::singleton().findSchema(*name)) known->classification = classify(*handle);
  }
  cached = known;
  return *known;
}

bool crosses_devices(const at::RecordFunction& function) {
  std::optional<c10::Device> first;
  for (const auto& value : function.inputs()) {
    std::optional<c10::Device> device;
    if (value.isTensor() && value.toTensor().defined()) device = value.toTensor().device();
    if (value.isDevice()) device = value.toDevice();
    if (!device) continue;
    if (first && *first != *device) return true;
    first = device;
  }
  return false;
}

// How an operand lies in memory, which no count of calls or of results' bytes tells: in sums that a reader understands,
// and in one of 32 bits of each operand's sizes and strides, in which nothing makes up for anything else.
void count_layout(const at::Tensor& operand, std::uint64_t place) {
  if (!operand.defined() || operand.layout() != at::kStrided || operand.numel() == 0) return;
  std::int64_t last = 0;
  std::uint64_t hash = mixed(place, static_cast<std::int64_t>(operand.scalar_type()));
  for (std::int64_t dim = 0; dim < operand.dim(); ++dim) {
    last += (operand.size(dim) - 1) * operand.stride(dim);
    hash = mixed(mixed(hash, operand.size(dim)), operand.stride(dim));
  }
  const auto bytes = (last + 1) * static_cast<std::int64_t>(operand.element_size());
  counts().strided.fetch_add(!operand.is_contiguous(), std::memory_order_relaxed);
  counts().spanned_bytes.fetch_add(bytes, std::memory_order_relaxed);
  counts().each_operand.fetch_add(static_cast<std::int64_t>(hash >> 32), std::memory_order_relaxed);
}

void count_layouts(const at::RecordFunction& function, std::uint64_t op) {
  std::int64_t place = 0;
  for (const auto& value : function.inputs()) {
    op = mixed(op, ++place);
    if (value.isTensor()) count_layout(value.toTensor(), op);
    if (!value.isList()) continue;
    for (const c10::IValue& element : value.toListRef())
      if (element.isTensor()) count_layout(element.toTensor(), op = mixed(op, ++place));
  }
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  Operator& op = lookup(function);
  Running& here = running();
  const OperatorKind kind = op.classification.kind;
  const bool outermost = here.counted == 0;
  const bool counted = kind == OperatorKind::kDispatch || kind == OperatorKind::kCopy;
  Counts& all = counts();
  if (kind == OperatorKind::kRead) {
    all.scalar_reads.fetch_add(1, std::memory_order_relaxed);
    op.count.fetch_add(1, std::memory_order_relaxed);
  }
  // A device's masked_select issues a nonzero and an equal reads a scalar: one wait each, not two.
  if (op.classification.synchronises && here.synchronising == 0) all.sync_calls.fetch_add(1, std::memory_order_relaxed);
  if (kind == OperatorKind::kTransparent && outermost) all.views.fetch_add(1, std::memory_order_relaxed);
  if (counted && outermost) {
    if (function.needsInputs()) count_layouts(function, op.hash);
    op.count.fetch_add(1, std::memory_order_relaxed);
    if (kind == OperatorKind::kDispatch) {
      all.dispatches.fetch_add(1, std::memory_order_relaxed);
    } else {
      all.copies.fetch_add(1, std::memory_order_relaxed);
      if (function.needsInputs() && crosses_devices(function))
        all.device_copies.fetch_add(1, std::memory_order_relaxed);
    }
  }
  here.flags.push_back(static_cast<std::uint8_t>((counted ? 1 : 0) | (op.classification.synchronises ? 2 : 0)));
  here.counted += counted;
  here.synchronising += op.classification.synchronises;
  return nullptr;
}

void on_end(const at::RecordFunction&, at::ObserverContext*) {
  Running& here = running();
  if (here.flags.empty()) return;  // an asynchronous range that began on another thread
  here.counted -= here.flags.back() & 1;
  here.synchronising -= here.flags.back() >> 1;
  here.flags.pop_back();
}

void on_forward(const char* component) {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  ++all.forward_calls[component];
}

// Kernels without the namespace that all share; graphs among them, by what happens to them.
void on_device_event(DeviceEvent event, const std::string& name) {
  static const std::string prefix = "twinbench::";
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  switch (event) {
    case DeviceEvent::kProduct: ++all.products[name]; break;
    case DeviceEvent::kLaunch: ++all.launches[name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name]; break;
    case DeviceEvent::kGraphLaunch: ++all.launches[kGraphPrefix + name]; break;
    case DeviceEvent::kCapture: ++all.launches[kCapturePrefix + name]; break;
  }
}

}  // namespace

void start_operator_counting(bool look_at_operands) {
#ifndef NDEBUG
  // LibTorch's own release build never marks inputs as readable, so its header's debug check would always fire.
  if (look_at_operands)
    throw Error(ErrorKind::kInternal, "device counters", "a build without NDEBUG",
                "build with CMAKE_BUILD_TYPE=Release or RelWithDebInfo");
#endif
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  if (all.holders++ > 0) return;
  all.callback = at::addGlobalCallback(
      at::RecordFunctionCallback(on_start, on_end).needsInputs(look_at_operands).scopes({at::RecordScope::FUNCTION}));
  forward_call_observer = on_forward;
  device_event_observer = on_device_event;
}

void stop_operator_counting() {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  if (--all.holders > 0) return;
  at::removeCallback(all.callback);
  forward_call_observer = nullptr;
  device_event_observer = nullptr;
}

OperatorTotals operator_totals() {
  Counts& all = counts();
  const std::lock_guard lock(all.mutex);
  OperatorTotals totals{all.dispatches,    all.scalar_reads, all.sync_calls, all.copies, all.device_copies, {},
                        all.forward_calls, all.launches,     all.products,   {}};
  totals.layout = {{"views", all.views},
                   {"strided", all.strided},
                   {"spanned_bytes", all.spanned_bytes},
                   {"each_operand", all.each_operand}};
  for (const auto& op : all.operators)
    if (op.count > 0) totals.by_name[op.name] += op.count;
  return totals;
}

}  // namespace twinbench
