// What both sides of the losses (C23) know: how much the decoder's loss counts in the text loss.
#pragma once

namespace twinbench::energy_flow {

constexpr double kDecoderLossShare = 0.1;

}  // namespace twinbench::energy_flow
