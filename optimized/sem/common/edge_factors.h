// What leads from the product of a step's factors back to the parameters of its edges (sem C06, C02): factors computed
// at set-up, once for as long as the parameters stay, and the last step of the way on either path.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "kernels/sem/common/edges.h"
#include "optimized/common/tensors.h"
#include "src/component.h"

namespace twinbench::sem {

// Of every edge: its weight dW/dw, and what its gradient over dt/2 is multiplied with to become that of theta. fp64.
struct EdgeFactors {
  at::Tensor of_theta, of_share;  // [edges]
  at::Tensor shares;              // [scales]
  at::Tensor scale;               // int64 [edges]
};

inline at::Tensor scales_of_edges(const NamedTensors& inputs) { return at::repeat_interleave(inputs["starts"].diff()); }

inline EdgeFactors edge_factors(const NamedTensors& inputs, const Setting& setting) {
  const at::Tensor theta = inputs["theta"].to(at::kDouble), shares = at::softmax(inputs["mix"].to(at::kDouble), 0);
  const at::Tensor scale = scales_of_edges(inputs);
  const double half_step = setting.option("dt") / 2;
  return {at::sigmoid(theta) * shares.index_select(0, scale) * half_step, at::softplus(theta) * half_step, shares,
          scale};
}

// On the host. product: z^T y, [dim, dim]; nodes: int64 [edges, 2]; the gradients go to "grad_theta" and "grad_mix".
template <class Real>
void edges_backward(const at::Tensor& product, const at::Tensor& nodes, const EdgeFactors& factors,
                    NamedTensors& results) {
  const Real* const c = product.const_data_ptr<Real>();
  const auto* const pair = nodes.const_data_ptr<std::int64_t>();
  const auto* const scale = factors.scale.const_data_ptr<std::int64_t>();
  const std::int64_t scales = factors.shares.numel();
  const auto doubles = [](const at::Tensor& tensor) { return tensor.const_data_ptr<double>(); };
  std::vector<double> of_scale(static_cast<std::size_t>(scales), 0.0);
  for (std::int64_t edge = 0; edge < factors.scale.numel(); ++edge) {
    const double across = double{across_edge(c, product.size(1), pair[2 * edge], pair[2 * edge + 1])};
    data<Real>(results["grad_theta"])[edge] = static_cast<Real>(doubles(factors.of_theta)[edge] * across);
    of_scale[static_cast<std::size_t>(scale[edge])] += doubles(factors.of_share)[edge] * across;
  }
  double mean = 0;
  for (std::int64_t s = 0; s < scales; ++s) mean += doubles(factors.shares)[s] * of_scale[static_cast<std::size_t>(s)];
  for (std::int64_t s = 0; s < scales; ++s)
    data<Real>(results["grad_mix"])[s] =
        static_cast<Real>(doubles(factors.shares)[s] * (of_scale[static_cast<std::size_t>(s)] - mean));
}

// The same for a kernel: operands in fp32, and what lies between its blocks.
class EdgesOnDevice {
 public:
  EdgesOnDevice() = default;
  // `finished`: an element of a tensor of zeros that only this uses.
  EdgesOnDevice(const NamedTensors& inputs, const Setting& setting, const at::Tensor& product,
                const NamedTensors& results, std::int32_t* finished)
      : nodes_(inputs["nodes"].to(at::kInt).contiguous()) {
    const EdgeFactors factors = edge_factors(inputs, setting);
    scale_ = factors.scale.to(at::kInt);
    of_theta_ = factors.of_theta.to(at::kFloat);
    of_share_ = factors.of_share.to(at::kFloat);
    shares_ = factors.shares.to(at::kFloat);
    share_terms_ = at::empty({edge_blocks(scale_.numel()), shares_.numel()}, shares_.options());
    arguments_ = {.edges = scale_.numel(),
                  .dim = static_cast<int>(product.size(1)),
                  .scales = static_cast<int>(shares_.numel()),
                  .product = data<float>(product),
                  .nodes = nodes_.const_data_ptr<std::int32_t>(),
                  .scale = scale_.const_data_ptr<std::int32_t>(),
                  .of_theta = of_theta_.const_data_ptr<float>(),
                  .of_share = of_share_.const_data_ptr<float>(),
                  .shares = shares_.const_data_ptr<float>(),
                  .grad_theta = data<float>(results["grad_theta"]),
                  .grad_mix = data<float>(results["grad_mix"]),
                  .share_terms = data<float>(share_terms_),
                  .finished = reinterpret_cast<unsigned*>(finished)};
  }

  const EdgeArguments& arguments() const { return arguments_; }

 private:
  at::Tensor nodes_, scale_, of_theta_, of_share_, shares_, share_terms_;
  EdgeArguments arguments_;
};

}  // namespace twinbench::sem
