// Optimized energy_flow.embedding_mapper on CUDA: library products over all rows, fused kernels between them.
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/embedding_mapper/mapper.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

class CudaMapper final : public Mapper<float> {
 public:
  CudaMapper(const NamedTensors& inputs, const Setting& setting) : Mapper(inputs, setting, at::kBFloat16) {
    if (!setting.backward()) return;
    const std::int64_t terms = surface_terms(rows_, last_.width);
    terms_ = at::empty({2, terms}, inputs["embedding"].options());
    last_.scale_terms = data<float>(terms_);
    last_.offset_terms = last_.scale_terms + terms;
  }

 private:
  void gather(const kernels::StridedRows<float>& from, const at::Tensor& to) override {
    kernels::launch_gather({.rows = rows_, .columns = to.size(1), .from = from, .to = operands<float>(to)}, stream());
  }
  void product(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out) override {
    multiply(out, x, weight.t(), tf32_);
  }
  void activate(const Activation& layer) override { kernels::launch_activation(layer, stream()); }
  void activate_backward(const Activation& layer) override { kernels::launch_activation_backward(layer, stream()); }
  void surface(const Surface& last) override { launch_surface(last, stream()); }
  void surface_backward(const Surface& last) override { launch_surface_backward(last, stream()); }

  at::Tensor terms_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaMapper>(inputs, setting);
}

}  // namespace twinbench::energy_flow::embedding_mapper
