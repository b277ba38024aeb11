// Optimized energy_flow.embedding_mapper on CUDA: library products over all rows, fused kernels between.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "kernels/energy_flow/embedding_mapper/arguments.h"
#include "optimized/energy_flow/embedding_mapper/inputs.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

namespace mapper = energy_flow::embedding_mapper;

float* data(at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }
const float* read(const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); }

class EmbeddingMapperCuda : public Runnable {
 public:
  EmbeddingMapperCuda(const NamedTensors& inputs, const Setting& setting) : m_(energy_flow::embedding_mapper::mapper_inputs(inputs, setting)) {
    if (!m_.x.is_cuda())
      throw Error(ErrorKind::kMissingDevice, "embedding", c10::str(m_.x.device()), "put the inputs on a CUDA device");
    if (m_.round)
      for (at::Tensor* weight : {&m_.weight_1, &m_.weight_2, &m_.weight_3}) *weight = weight->to(at::kBFloat16);
    copies_x_ = m_.round || m_.x.stride(1) != 1;  // else the product reads the input itself: one launch less
    x_ = copies_x_ ? operand_matrix(m_.embedding) : m_.x;
    if (copies_x_) gather_ = {m_.rows, m_.embedding, m_.x.stride(0), m_.x.stride(1), read(m_.x), operands(x_)};
    prepare(layer_1_, m_.inner, m_.bias_1, m_.gain_1, m_.shift_1);
    prepare(layer_2_, m_.middle, m_.bias_2, m_.gain_2, m_.shift_2);
    product_3_ = matrix(m_.cells);
    surface_ = matrix(m_.backward ? 0 : m_.cells);
    last_ = {m_.rows,       m_.cells,        read(product_3_), read(m_.bias_3), read(m_.cell_offset),
             read(m_.scale), read(m_.offset), data(surface_)};
    if (m_.backward) prepare_backward(inputs);
  }

  void run() override {
    const c10::cuda::CUDAGuard device(m_.x.device());
    const at::NoGradGuard no_tape;
    const auto stream = c10::cuda::getCurrentCUDAStream().stream();
    if (m_.rows > 0) {
      if (copies_x_) mapper::launch_gather(gather_, stream);
      multiply(layer_1_.product, x_, m_.weight_1.t());
      mapper::launch_activation(layer_1_.forward, stream);
      multiply(layer_2_.product, layer_1_.hidden, m_.weight_2.t());
      mapper::launch_activation(layer_2_.forward, stream);
      multiply(product_3_, layer_2_.hidden, m_.weight_3.t());
    }
    if (!m_.backward)
      mapper::launch_surface(last_, stream);
    else if (m_.rows > 0)
      run_backward(stream);
  }

  NamedTensors outputs() override { return m_.backward ? gradients_ : NamedTensors{{"surface", surface_}}; }

 private:
  struct Layer {
    at::Tensor product, hidden;  // [rows, width]; hidden is an operand
    at::Tensor before, inverse, grad_hidden, grad_product, grad_operand;  // backward only
    mapper::ActivationArguments forward;
    mapper::ActivationBackwardArguments backward;
  };

  at::Tensor matrix(std::int64_t columns) const { return at::empty({m_.rows, columns}, m_.x.options()); }
  at::Tensor operand_matrix(std::int64_t columns) const {
    return at::empty({m_.rows, columns}, m_.x.options().dtype(m_.round ? at::kBFloat16 : at::kFloat));
  }
  mapper::Operands operands(at::Tensor& tensor) const {
    if (!m_.round) return {data(tensor), nullptr};
    return {nullptr, reinterpret_cast<std::uint16_t*>(tensor.mutable_data_ptr<at::BFloat16>())};
  }

  // fp32 out = a * b; bf16 operands are multiplied on tensor cores and accumulated and returned in fp32.
  void multiply(at::Tensor& out, const at::Tensor& a, const at::Tensor& b) const {
    if (m_.round)
      at::mm_out(out, a, b, at::kFloat);
    else
      at::mm_out(out, a, b);
  }

  void prepare(Layer& layer, std::int64_t width, const at::Tensor& bias, const at::Tensor& gain, const at::Tensor& shift) {
    layer.product = matrix(width);
    layer.hidden = operand_matrix(width);
    layer.forward = {m_.rows, width, read(bias), read(gain), read(shift), data(layer.product), operands(layer.hidden), nullptr,
                     nullptr};
  }

  void prepare_backward(const NamedTensors& inputs) {
    const auto options = m_.x.options();
    gradients_.set("grad_embedding", at::zeros({m_.rows, m_.embedding}, options));
    for (const char* name : {"weight_1", "bias_1", "gain_1", "shift_1", "weight_2", "bias_2", "gain_2", "shift_2", "weight_3",
                             "bias_3", "scale", "offset", "cell_offset"})
      gradients_.set(std::string("grad_") + name, at::zeros(inputs[name].sizes(), options));
    prepare_backward(layer_1_, "1");
    prepare_backward(layer_2_, "2");
    grad_operand_ = m_.round ? operand_matrix(m_.cells) : product_3_;
    terms_ = at::empty({2, m_.rows}, options);
    const at::Tensor& gradient = m_.grad_surface;
    last_backward_ = {m_.rows,
                      m_.cells,
                      read(m_.bias_3),
                      read(m_.scale),
                      read(gradient),
                      gradient.stride(0),
                      gradient.stride(1),
                      data(product_3_),
                      rounded(grad_operand_),
                      data(terms_),
                      data(terms_) + m_.rows,
                      gradient_of("bias_3"),
                      gradient_of("cell_offset"),
                      gradient_of("scale"),
                      gradient_of("offset")};
    for (const std::string number : {"1", "2", "3"}) grad_weights_.push_back(gradients_["grad_weight_" + number]);
    grad_embedding_ = gradients_["grad_embedding"];
  }

  void prepare_backward(Layer& layer, const std::string& number) {
    const std::int64_t width = layer.forward.width;
    layer.before = matrix(width);
    layer.inverse = at::empty({m_.rows}, m_.x.options());
    layer.grad_hidden = matrix(width);
    layer.grad_product = matrix(width);
    layer.grad_operand = m_.round ? operand_matrix(width) : layer.grad_product;
    layer.forward.before = data(layer.before);
    layer.forward.inverse = data(layer.inverse);
    layer.backward = {m_.rows,
                      width,
                      layer.forward.gain,
                      read(layer.product),
                      read(layer.before),
                      read(layer.inverse),
                      read(layer.grad_hidden),
                      data(layer.grad_product),
                      rounded(layer.grad_operand),
                      gradient_of("bias_" + number),
                      gradient_of("gain_" + number),
                      gradient_of("shift_" + number)};
  }

  mapper::Operands rounded(at::Tensor& tensor) const { return m_.round ? operands(tensor) : mapper::Operands{}; }
  float* gradient_of(const std::string& name) { return gradients_["grad_" + name].mutable_data_ptr<float>(); }

  void run_backward(kernels::Stream stream) {
    mapper::launch_surface_backward(last_backward_, stream);
    multiply(grad_weights_[2], grad_operand_.t(), layer_2_.hidden);
    multiply(layer_2_.grad_hidden, grad_operand_, m_.weight_3);
    mapper::launch_activation_backward(layer_2_.backward, stream);
    multiply(grad_weights_[1], layer_2_.grad_operand.t(), layer_1_.hidden);
    multiply(layer_1_.grad_hidden, layer_2_.grad_operand, m_.weight_2);
    mapper::launch_activation_backward(layer_1_.backward, stream);
    multiply(grad_weights_[0], layer_1_.grad_operand.t(), x_);
    multiply(grad_embedding_, layer_1_.grad_operand, m_.weight_1);
  }

  energy_flow::embedding_mapper::MapperInputs m_;  // in bf16 mode its weights are bf16 here
  bool copies_x_ = false;
  at::Tensor x_, product_3_, surface_, grad_operand_, terms_, grad_embedding_;
  Layer layer_1_, layer_2_;
  mapper::GatherArguments gather_;
  mapper::SurfaceArguments last_;
  mapper::SurfaceBackwardArguments last_backward_;
  std::vector<at::Tensor> grad_weights_;  // the tensors in `gradients_`
  NamedTensors gradients_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<EmbeddingMapperCuda>(inputs, setting);
}

}  // namespace twinbench::energy_flow::embedding_mapper
