// Launches energy_flow.text_decoder's kernels.
//
// version | idea                                                                    | state
// 1       | five kernels a layer and step, two for the choice, a step as one graph; | in use: bound by reading the
//         | ended rows are left out, and a step of none ends at once                | weights
#include "kernels/common/grid.h"
#include "kernels/common/simt_device.h"
#include "kernels/energy_flow/text_decoder/kernel.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

// Whether rows of weights may be read four at a time.
bool in_fours(std::int64_t inner, const float* weight, const std::uint16_t* weight_bf16) {
  return inner % 4 == 0 && reinterpret_cast<std::uintptr_t>(weight) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(weight_bf16) % 8 == 0;
}
dim3 tiles(const ProductArguments& a) {
  return {static_cast<unsigned>(product_pieces(a.columns)),
          static_cast<unsigned>(kernels::blocks_of(a.rows, kProductRows)), static_cast<unsigned>(a.groups)};
}

}  // namespace

void launch_start(const DecodeArguments& a, kernels::Stream stream) {
  simt::launch(StartRows{}, simt::grid(a.rows), kRowThreads, 0, stream, a);
}

void launch_adapter_layer(const output_collector::LayerArguments& a, kernels::Stream stream) {
  if (a.rows == 0) return;
  const dim3 grid(static_cast<unsigned>(output_collector::pieces_of(a.columns)),
                  static_cast<unsigned>(kernels::blocks_of(a.rows, output_collector::kRows)));
  const auto start = [&](auto kernel) {
    simt::launch(kernel, grid, output_collector::kLayerThreads, output_collector::kStagedBytes, stream, a);
  };
  const bool fours = in_fours(a.inner, a.weight, a.weight_bf16), bfloat = a.weight == nullptr;
  if (bfloat)
    fours ? start(AdapterLayerBfloat{}) : start(AdapterLayerBfloatAnyWidth{});
  else
    fours ? start(AdapterLayer{}) : start(AdapterLayerAnyWidth{});
}

void launch_normalise(const NormaliseArguments& a, kernels::Stream stream) {
  simt::launch(NormaliseRows{}, simt::grid(a.rows), kRowThreads, 0, stream, a);
}

void launch_product(const ProductArguments& a, kernels::Stream stream) {
  if (a.rows == 0) return;
  const auto start = [&](auto kernel) {
    simt::launch(kernel, tiles(a), kProductThreads, kProductStagedBytes, stream, a);
  };
  const bool fours = in_fours(a.inner, a.weight, a.weight_bf16), bfloat = a.weight == nullptr;
  if (bfloat)
    fours ? start(ProductBfloat{}) : start(ProductBfloatAnyWidth{});
  else
    fours ? start(Product{}) : start(ProductAnyWidth{});
}

void launch_logits(const ProductArguments& a, kernels::Stream stream) {
  if (a.rows == 0) return;
  const auto start = [&](auto kernel) {
    simt::launch(kernel, tiles(a), kProductThreads, kProductStagedBytes, stream, a);
  };
  const bool fours = in_fours(a.inner, a.weight, a.weight_bf16), bfloat = a.weight == nullptr;
  if (bfloat)
    fours ? start(LogitsBfloat{}) : start(LogitsBfloatAnyWidth{});
  else
    fours ? start(Logits{}) : start(LogitsAnyWidth{});
}

void launch_attend(const AttendArguments& a, kernels::Stream stream) {
  simt::launch(Attend{}, simt::grid(a.rows * a.heads), kRowThreads,
               (a.tokens + a.width) * static_cast<std::int64_t>(sizeof(float)), stream, a);
}

void launch_pick(const DecodeArguments& a, kernels::Stream stream) {
  simt::launch(Pick{}, simt::grid(a.rows), kRowThreads, 0, stream, a);
}

void launch_join(const DecodeArguments& a, kernels::Stream stream) {
  simt::launch(JoinWords{}, simt::grid(a.rows), kRowThreads, 0, stream, a);
}

}  // namespace twinbench::energy_flow::text_decoder
