// The kernel of energy_flow.metrics: the record's, as the training step has it.
#pragma once

#include "kernels/energy_flow/common/metric_record_kernel.h"
#include "kernels/energy_flow/metrics/arguments.h"

namespace twinbench::energy_flow::metrics {

namespace simt = kernels::simt;

struct MicroStepRecord : RecordMicroStep {};

}  // namespace twinbench::energy_flow::metrics
