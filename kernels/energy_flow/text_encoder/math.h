// Arithmetic of energy_flow.text_encoder (C18), shared by host and device: that of every text encoder.
#pragma once

#include "kernels/energy_flow/common/encoder_rows.h"
