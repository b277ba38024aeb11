// Arithmetic of energy_flow.metrics (C29): all of it is energy_flow/common's, which the training step takes too.
#pragma once

#include "kernels/energy_flow/common/metric_record.h"
