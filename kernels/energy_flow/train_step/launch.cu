// Launches the training step's own kernels.
//
// version | idea                                                                        | state
// 1       | a kernel for what lies between two stages; what is one number by one thread | in use: 2 a window, 2 a
//         |                                                                             | micro-step, 2 at its end
// Predicted at 50 k parameters: each moves less than a megabyte, so each is a launch, about 3 us.
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/train_step/texts_kernel.h"

namespace twinbench::energy_flow::train_step {
namespace {

dim3 grid_of(std::int64_t count) {
  const std::int64_t blocks = kernels::striding_blocks(count, kThreads);
  return simt::grid(blocks > 0 ? blocks : 1);
}

}  // namespace

void launch_begin(const BeginArguments& a, kernels::Stream stream) {
  simt::launch(Begin{}, grid_of(a.count > a.micro_steps ? a.count : a.micro_steps), kThreads, 0, stream, a);
}
void launch_stage(const StageArguments& a, kernels::Stream stream) {
  simt::launch(Stage{}, simt::grid(kernels::striding_blocks(2 * a.rows, 1)), kThreads, 0, stream, a);
}
void launch_stage_texts(const StageTextsArguments& a, kernels::Stream stream) {
  simt::launch(StageTexts{}, simt::grid(kernels::striding_blocks(a.batch, 1)), kThreads, 0, stream, a);
}
void launch_decoded_loss(const DecodedLossArguments& a, kernels::Stream stream) {
  simt::launch(DecodedLoss{}, simt::grid(1), kThreads, 0, stream, a);
}
void launch_inspect(const InspectArguments& a, kernels::Stream stream) {
  simt::launch(Inspect{}, simt::grid(1), kThreads, 0, stream, a);
}
void launch_accumulate(const AccumulateArguments& a, kernels::Stream stream) {
  simt::launch(Accumulate{}, grid_of(a.count + a.text_count), kThreads, 0, stream, a);
}
void launch_gather(const GatherArguments& a, kernels::Stream stream) {
  simt::launch(Gather{}, grid_of(a.count), kThreads, 0, stream, a);
}
void launch_renew(const RenewArguments& a, kernels::Stream stream) {
  simt::launch(Renew{}, simt::grid(a.count > 0 ? a.count : 1), kThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::train_step
