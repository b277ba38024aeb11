// Launches the text encoder's kernels.
//
// version | idea                                                                            | state
// 1       | library products and fused attention; bias, GELU, LayerNorm in a kernel each    | in use: bound by memory
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/text_encoder/kernel.h"

namespace twinbench::energy_flow::text_encoder {
namespace {

using kernels::kElementThreads;

dim3 elements(std::int64_t rows, std::int64_t width) {
  return simt::grid(kernels::striding_blocks(rows * width, kElementThreads));
}
dim3 columns_of(std::int64_t rows, std::int64_t width) {
  const simt::Index3 blocks = kernels::row_pieces(rows, width, kElementThreads);
  return {blocks.x, blocks.y, blocks.z};
}
dim3 tiles(const Attention<float>& a) {
  return {static_cast<unsigned>(kernels::blocks_of(a.queries, kTileRows)), static_cast<unsigned>(a.heads),
          static_cast<unsigned>(a.batch)};
}

}  // namespace

void launch_embed(const EmbedArguments<float>& a, kernels::Stream stream) {
  simt::launch(Embed{}, elements(a.rows, a.width), kElementThreads, 0, stream, a);
}

void launch_clear(const ClearArguments& a, kernels::Stream stream) {
  simt::launch(Clear{}, elements(a.rows, a.width), kElementThreads, 0, stream, a);
}

void launch_elements(const ElementArguments<float>& a, kernels::Stream stream) {
  simt::launch(Elements{}, elements(a.rows, a.width), kElementThreads, 0, stream, a);
}

void launch_attend(const Attention<float>& a, kernels::Stream stream) {
  simt::launch(Attend{}, tiles(a), kAttentionThreads, attention_shared_bytes(a.width), stream, a);
}

void launch_attend_back(const Attention<float>& a, kernels::Stream stream) {
  const std::int64_t shared = attention_back_shared_bytes(a.width);
  simt::launch(AttendQueriesBack{}, tiles(a), kAttentionThreads, shared, stream, a);
  simt::launch(AttendKeysBack{}, tiles(a), kAttentionThreads, shared, stream, a);
}

void launch_norm(const ResidualNorm<float>& a, kernels::Stream stream) {
  simt::launch(Norm{}, simt::grid(kernels::warp_blocks(a.rows, kNormThreads)), kNormThreads, 0, stream, a);
}

void launch_norm_back(const ResidualNorm<float>& a, kernels::Stream stream) {
  simt::launch(NormBack{}, simt::grid(kernels::warp_blocks(a.rows, kNormThreads)), kNormThreads, 0, stream, a);
  simt::launch(NormColumns{}, simt::grid(kernels::blocks_of(a.width, kernels::kSumColumns)), kernels::kSumThreads, 0,
               stream, a);
}

void launch_mean(const MeanArguments<float>& a, kernels::Stream stream) {
  simt::launch(Mean{}, columns_of(a.texts, a.width), kElementThreads, 0, stream, a);
}

void launch_mean_back(const MeanArguments<float>& a, kernels::Stream stream) {
  simt::launch(MeanBack{}, elements(a.rows, a.width), kElementThreads, 0, stream, a);
}

void launch_table_gradient(const TableGradient<float>& a, kernels::Stream stream) {
  simt::launch(SortTokens{}, dim3{1, 1, 1}, kSortThreads, 0, stream, a);
  simt::launch(TableSums{}, simt::grid(kernels::striding_blocks(a.entries, 1)), kElementThreads, 0, stream, a);
}

void launch_place_gradient(const TableGradient<float>& a, kernels::Stream stream) {
  simt::launch(PlaceSums{}, columns_of(a.entries, a.width), kElementThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::text_encoder
