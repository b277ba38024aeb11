// Launches energy_flow.output_collector's kernels.
//
// version | idea                                                               | state
// 1       | the map's rows, then a kernel a layer: bias, GELU and pieces of the | in use: bound by reading the weights
//         | moments behind its product, normalisation on the next one's load    |
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/output_collector/kernel.h"

namespace twinbench::energy_flow::output_collector {

void launch_map(const MapArguments& a, kernels::Stream stream) {
  simt::launch(MapRows{}, simt::grid(kernels::striding_blocks(a.rows, 1)), kMapThreads, 0, stream, a);
}

void launch_layer(const LayerArguments& a, kernels::Stream stream) {
  if (a.rows == 0) return;
  const dim3 grid(static_cast<unsigned>(pieces_of(a.columns)),
                  static_cast<unsigned>(kernels::blocks_of(a.rows, kRows)));
  const auto aligned = [&](const void* where, std::uintptr_t bytes) {
    return a.inner % 4 == 0 && reinterpret_cast<std::uintptr_t>(where) % bytes == 0;
  };
  if (a.weight != nullptr && aligned(a.weight, 16))
    simt::launch(Layer{}, grid, kThreads, kStagedBytes, stream, a);
  else if (a.weight != nullptr)
    simt::launch(LayerAnyWidth{}, grid, kThreads, kStagedBytes, stream, a);
  else if (aligned(a.weight_bf16, 8))
    simt::launch(LayerBfloat{}, grid, kThreads, kStagedBytes, stream, a);
  else
    simt::launch(LayerBfloatAnyWidth{}, grid, kThreads, kStagedBytes, stream, a);
}

}  // namespace twinbench::energy_flow::output_collector
