// Optimized energy_flow.text_encoder on the CPU: all texts at once and no padding.
//
// What that gains over a text at a time depends on how long texts are. At 66 tokens, the train case, products of one
// text are wide enough already: 2.5 GFLOP take 25 ms of a machine's 98 GFLOP/s (`twinbench ceilings`, on two busy
// cores) in either form, where one by one took 59 ms in all and this 34: more than 2.4 times is beyond the floor. At 9
// tokens, the captions, operators and the weights that each text reads again weigh more: 3.6 times.
#include "optimized/energy_flow/common/cpu_text_encoder.h"
#include "optimized/energy_flow/text_encoder/encoder.h"

namespace twinbench::energy_flow::text_encoder {

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<Encoder<CpuTextEncoder<double>>>(inputs, setting);
  return std::make_unique<Encoder<CpuTextEncoder<float>>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_encoder
