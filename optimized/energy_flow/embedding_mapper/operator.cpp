// twinbench::energy_flow_embedding_mapper: teacher embeddings to one energy per surface cell.
#include <ATen/ATen.h>

#include "optimized/common/operators.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

NamedTensors empty_results(const NamedTensors& inputs) {
  const at::Tensor& embedding = inputs["embedding"];
  return {{"surface", at::empty_symint({embedding.sym_size(0), inputs["weight_3"].sym_size(0)}, embedding.options())}};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(twinbench, library) {
  register_operator(library,
                    {"energy_flow.embedding_mapper",
                     "Tensor embedding, Tensor weight_1, Tensor bias_1, Tensor gain_1, Tensor shift_1, Tensor weight_2, "
                     "Tensor bias_2, Tensor gain_2, Tensor shift_2, Tensor weight_3, Tensor bias_3, Tensor scale, "
                     "Tensor offset, Tensor cell_offset, *, bool bf16_products=False",
                     "Tensor surface",
                     {},
                     &empty_results});
}

}  // namespace twinbench::energy_flow::embedding_mapper
