// Launches energy_flow.flow_compaction's kernels.
//
// version | idea                                                                            | state
// 1       | tiles of the list counted, scanned by the blocks that scatter, rows moved and   | replaced: a chain of five
//         | stepped in one pass, by the list or to where they lie together                  | loads, one in flight
// 2       | survivors' slots beside their places; rows found, loaded, computed in rounds    | in use: three launches
// Modelled (H200 / RTX 5090): 5.9 / 4.6 us at 0.2 % of 100,000 slots, 7.9 / 6.1 at 5 %, 14.5 / 8.3 at 25 %, 43.6 / 57.3
// at 100 %, where every slot computed and masked takes about as long. Of the first figures three launches are most.
// A scan in one pass (each tile waiting for the one before) would save a launch; a grid-wide one needs all blocks at
// once. CUB's select does not run on device simt, and takes a launch and a scratch more for the children's shift.
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/flow_compaction/kernel.h"

namespace twinbench::energy_flow::flow_compaction {

void launch(const Arguments& a, kernels::Stream stream) {
  const dim3 tiles = simt::grid(tiles_of(a.places));
  const std::int64_t each = a.hidden < 128 ? (a.hidden + 3) / 4 : 32;  // threads of a row
  simt::launch(CountLive{}, tiles, kThreads, 0, stream, a);
  simt::launch(ScatterLive{}, tiles, kThreads, 0, stream, a);
  const std::int64_t most = a.rows == Rows::kDense ? a.slots : a.rows_at_most();
  simt::launch(StepRows{}, simt::grid(kernels::striding_blocks(most * each, kThreads, kMostBlocks)), kThreads, 0,
               stream, a);
}

}  // namespace twinbench::energy_flow::flow_compaction
