// Sets a variant up for the trace and puts the trace into fields of a record's row.
#include "harness/counters/trace_component.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <algorithm>

#include "harness/compare/inputs.h"
#include "harness/gpu/nvtx_range.h"

namespace twinbench {

DeviceActivity trace_run(const Component& component, Variant variant, const Setting& setting, std::uint64_t seed,
                         std::int64_t runs, int warm_up) {
  const NamedTensors inputs =
      placed_inputs(generated_inputs(component.spec, setting, seed), setting.dtype, setting.device);
  const auto runnable = component.make(variant, inputs, setting);
  for (int run = 0; run < warm_up; ++run) runnable->run();
  runnable->start_over();
  TraceOptions options;
  if (setting.device.is_cuda())
    options.finish = [index = std::max<c10::DeviceIndex>(setting.device.tensors().index(), 0)] {
      at::detail::getCUDAHooks().deviceSynchronize(index);
    };
  // What starts from a state goes on from where the last run left it, which may be another way: the first run is the
  // counted one.
  if (component.spec.signature.has_state()) runs = 1;
  const NvtxRange range(Cell{&component, variant, setting.device, setting.dtype, &setting.input_case}.name(), "traced");
  return traced([&] { runnable->run(); }, runs, options);
}

nlohmann::json device_activity_fields(const std::optional<DeviceActivity>& activity) {
  if (!activity)
    return {{"device_activity", nullptr}, {"device_activity_reason", "not traced: the cell uses no CUDA device"}};
  return {{"device_activity", to_json(*activity)}, {"device_activity_reason", activity->reason}};
}

std::string trace_failure(const DeviceActivity& activity) {
  return activity.status == GpuStatus::kRecordsDropped ? activity.reason : "";
}

}  // namespace twinbench
