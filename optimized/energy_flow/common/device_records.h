// A pass's flows on the device between two steps, given to others and taken from them by way of the host.
#pragma once

#include <ATen/ATen.h>

#include <type_traits>

#include "kernels/common/stream.h"
#include "kernels/energy_flow/common/flow_arguments.h"
#include "optimized/energy_flow/common/flow_records.h"

namespace twinbench::energy_flow::flow_forward {
inline namespace TWINBENCH_FORM {

class DeviceRecords {
 public:
  // states [layers, slots, stride], in fp32 or bf16: of the rows that `a.next` names as sources.
  DeviceRecords(const Arguments& a, const at::Tensor& states) : a_(a), states_(states) {}

  void give(const NamedTensors& to) const {
    const std::int64_t slots = a_.slots.all(), samples = a_.slots.samples;
    const at::Tensor x = here(a_.flows.x, slots), y = here(a_.flows.y, slots), z = here(a_.flows.z, slots),
                     energy = here(a_.flows.energy, slots), distance = here(a_.flows.distance, slots),
                     age = here(a_.flows.age, slots), status = here(a_.flows.status, slots),
                     next = here(a_.next.slot, slots), source = here(a_.next.source, slots),
                     live = here(a_.next_live, samples), best = here(a_.states.best, samples),
                     stall = here(a_.states.stall, samples), states = states_.to(at::kCPU, at::kFloat);
    to["stats"].copy_(here(a_.stats, samples * kStatistics).view_as(to["stats"]));
    const std::int64_t width = to["hidden"].size(3), layers = to["hidden"].size(2);
    for (std::int64_t b = 0; b < samples; ++b) {
      const FlowRecords one = FlowRecords::of(to, b);
      const std::int64_t first = a_.slots.first(b);
      if (one.stats[kReason] == 0) one.stats[kSteps] = 0;
      one.stop[0] = data<std::int32_t>(best)[b], one.stop[1] = data<std::int32_t>(stall)[b];
      for (std::int32_t n = 0; n < one.stats[kCreated]; ++n) {
        const std::int64_t slot = first + n;
        const std::int32_t is = data<std::uint8_t>(status)[slot];
        const bool lives = is == flow_movement::kActive;
        one.standing[n] = lives ? kLiving : is_done(is) ? kCollected : kLost;
        if (one.standing[n] == kLost) continue;
        one.position[3 * n] = data<float>(x)[slot], one.position[3 * n + 1] = data<float>(y)[slot];
        one.energy[n] = data<float>(energy)[slot], one.age[n] = data<std::int32_t>(age)[slot];
        (lives ? one.position[3 * n + 2] : one.distance[n]) = data<float>(lives ? z : distance)[slot];
      }
      for (std::int32_t i = 0; i < data<std::int32_t>(live)[b]; ++i) {
        const std::int64_t row = data<std::int32_t>(source)[first + i], n = data<std::int32_t>(next)[first + i] - first;
        if (row != kNoSource) to["hidden"][b][n].copy_(states.narrow(2, 0, width).select(1, row).narrow(0, 0, layers));
      }
    }
  }

  // From records in fp32 on the host.
  void take(const NamedTensors& from) const {
    const std::int64_t slots = a_.slots.all(), samples = a_.slots.samples;
    const auto floats = [&] { return at::zeros({slots}, at::kFloat); };
    const auto integers = [](std::int64_t count) { return at::zeros({count}, at::kInt); };
    const at::Tensor x = floats(), y = floats(), z = floats(), energy = floats(), distance = floats(),
                     age = integers(slots), status = at::zeros({slots}, at::kByte), next = integers(slots),
                     live = integers(samples), best = integers(samples), stall = integers(samples),
                     steps = integers(samples), reason = integers(samples),
                     states = at::zeros(states_.sizes(), at::kFloat);
    for (std::int64_t b = 0; b < samples; ++b) {
      const FlowRecords one = FlowRecords::of(from, b);
      const std::int64_t first = a_.slots.first(b);
      std::int32_t& count = data<std::int32_t>(live)[b];
      for (std::int32_t n = 0; n < one.stats[kCreated]; ++n) {
        const std::int64_t slot = first + n;
        const bool lives = one.standing[n] == kLiving;
        data<float>(x)[slot] = one.position[3 * n], data<float>(y)[slot] = one.position[3 * n + 1];
        data<float>(z)[slot] = one.position[3 * n + 2], data<float>(energy)[slot] = one.energy[n];
        data<float>(distance)[slot] = one.distance[n], data<std::int32_t>(age)[slot] = one.age[n];
        data<std::uint8_t>(status)[slot] =
            static_cast<std::uint8_t>(lives                           ? flow_movement::kActive
                                      : one.standing[n] == kCollected ? flow_movement::kDoneZ0
                                                                      : flow_movement::kDead);
        if (!lives) continue;
        data<std::int32_t>(next)[first + count++] = static_cast<std::int32_t>(slot);
        states.select(1, slot).narrow(1, 0, from["hidden"].size(3)).copy_(from["hidden"][b][n]);
      }
      data<std::int32_t>(best)[b] = one.stop[0], data<std::int32_t>(stall)[b] = one.stop[1];
      data<std::int32_t>(steps)[b] = one.stats[kSteps], data<std::int32_t>(reason)[b] = one.stats[kReason];
    }
    put(a_.flows.x, x), put(a_.flows.y, y), put(a_.flows.z, z), put(a_.flows.energy, energy);
    put(a_.flows.distance, distance), put(a_.flows.age, age), put(a_.flows.status, status);
    put(a_.next.slot, next), put(a_.next.source, next), put(a_.next_live, live);
    put(a_.states.best, best), put(a_.states.stall, stall);
    put(a_.states.steps, steps), put(a_.states.reason, reason);
    put(a_.stats, from["stats"].flatten()), put(a_.margin, at::ones({samples}, at::kFloat));
    states_.copy_(states);
  }

 private:
  template <class T>
  at::Tensor there(T* values, std::int64_t count) const {
    return at::for_blob(values, {count})
        .options(states_.options().dtype(c10::CppTypeToScalarType<T>::value))
        .target_device(states_.device())
        .make_tensor();
  }
  template <class T>
  at::Tensor here(T* values, std::int64_t count) const {
    return there(values, count).cpu();
  }
  template <class T>
  void put(T* to, const at::Tensor& values) const {
    there(to, values.size(0)).copy_(values);
  }

  const Arguments& a_;
  const at::Tensor states_;
};

}  // namespace TWINBENCH_FORM
}  // namespace twinbench::energy_flow::flow_forward
