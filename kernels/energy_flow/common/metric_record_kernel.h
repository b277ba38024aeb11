// The record's kernel: one warp, a lane a slot; all lanes look at each sample together, so that nothing is reduced.
#pragma once

#include "kernels/common/simt_host_memory.h"
#include "kernels/common/vectors.h"
#include "kernels/energy_flow/common/metric_record.h"

namespace twinbench::energy_flow {

constexpr int kRecordThreads = 32;  // a lane a slot
static_assert(kRecordThreads == kSlots);
constexpr int kRecordBatch = 8;  // samples whose loads wait together

// Grid: one block.
struct RecordMicroStep {
  static constexpr int kMaxThreads = kRecordThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const RecordArguments& a) const {
    struct Sample {
      std::int32_t steps, reason;
      std::int64_t flow_steps;
    };
    const int slot = kernels::simt::thread_rank(block);
    RecordValue value;
    value.whole = 0;  // as fp64, too
    if (!a.is_first) value = a.record->slot[slot];
    const bool whole = !is_loss(slot) && slot != kSlotNorm && slot != kSlotRate;
    std::int64_t total = whole ? value.whole : 0;
    kernels::in_batches<kRecordBatch, std::int64_t>(
        0, 1, a.step.samples,
        [&](std::int64_t i) {
          return Sample{a.step.steps[i], a.step.reason[i], a.step.flow_steps[i]};
        },
        [&](std::int64_t, const Sample& one) {
          total = with_sample(slot, total, one.steps, one.reason, one.flow_steps);
        });
    if (whole) value.whole = total;
    value = with_step(slot, value, a.step);
    a.record->slot[slot] = value;
    if (a.published == nullptr) return;
    a.published->slot[slot] = value;
    kernels::simt::visible_to_host(block);
    block.warp_barrier();
    if (slot == 0) *a.sequence = a.number;
  }
};

}  // namespace twinbench::energy_flow
