// Launchers of the text encoder's kernels: in energy_flow/common, where the training step takes them too.
#pragma once

#include "kernels/energy_flow/common/text_encoder_launch.h"
