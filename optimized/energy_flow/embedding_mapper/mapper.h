// The embedding mapper's steps, the same on both paths: products over all rows at once, fused passes between them. A
// path says how each step is done.
#pragma once

#include <ATen/ATen.h>

#include <array>
#include <string>
#include <vector>

#include "kernels/energy_flow/embedding_mapper/arguments.h"
#include "optimized/common/packing.h"
#include "optimized/common/products.h"

namespace twinbench::energy_flow::embedding_mapper {

template <class Real>
class Mapper : public Runnable {
 public:
  // operand_type: what the products take in bf16 mode; in fp32 the rounded values take the place of the exact ones.
  Mapper(const NamedTensors& inputs, const Setting& setting, at::ScalarType operand_type)
      : backward_(setting.backward()),
        round_(rounds_operands(setting)),
        copies_operands_(round_ && operand_type == at::kBFloat16),
        rows_(setting.size("rows")),
        inputs_(inputs),
        embedding_(inputs["embedding"]),
        results_(zero_results(setting)) {
    for (const char* number : {"1", "2", "3"})
      weights_.push_back(operand_of(inputs[std::string("weight_") + number], setting, operand_type));
    gathers_ = round_ || !embedding_.is_contiguous();  // else the product reads the input itself
    x_ = gathers_ ? operand_matrix(embedding_.size(1)) : embedding_;
    for (std::size_t i = 0; i < layers_.size(); ++i) prepare(layers_[i], weights_[i].size(0), std::to_string(i + 1));
    last_product_ = matrix(setting.size("cells"));
    last_ = {.rows = rows_,
             .width = setting.size("cells"),
             .bias = parameter("bias_3"),
             .cell_offset = parameter("cell_offset"),
             .scale = parameter("scale"),
             .offset = parameter("offset"),
             .product = {.plain = data<Real>(last_product_)}};
    if (!backward_) {
      last_.surface = data<Real>(results_["surface"]);
      return;
    }
    grad_operand_ = gradient_operand(last_product_, last_.product);
    last_.gradient = strided_rows<Real>(inputs["grad_surface"]);
    last_.grad_bias = gradient("bias_3");
    last_.grad_cell = gradient("cell_offset");
    last_.grad_scale = gradient("scale");
    last_.grad_offset = gradient("offset");
    for (const char* name : {"grad_weight_1", "grad_weight_2", "grad_weight_3"})
      grad_weights_.push_back(results_[name]);
    grad_embedding_ = results_["grad_embedding"];
  }

  void run() override {
    if (rows_ == 0) return;
    const at::NoGradGuard no_tape;
    if (gathers_) gather(strided_rows<Real>(embedding_), x_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      product(i == 0 ? x_ : layers_[i - 1].hidden, weights_[i], layers_[i].product);
      activate(layers_[i].arguments);
    }
    product(layers_[1].hidden, weights_[2], last_product_);
    if (backward_)
      run_backward();
    else
      surface(last_);
  }

  NamedTensors outputs() override { return results_; }

 protected:
  using Activation = kernels::ActivationLayer<Real>;
  using Surface = SurfaceArguments<Real>;

  virtual void gather(const kernels::StridedRows<Real>& from, const at::Tensor& to) = 0;     // to: operands
  virtual void product(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out) = 0;  // x * weight^T
  virtual void activate(const Activation& layer) = 0;
  virtual void activate_backward(const Activation& layer) = 0;  // column sums too; grad_product ends as operands
  virtual void surface(const Surface& last) = 0;
  virtual void surface_backward(const Surface& last) = 0;  // likewise

  const bool backward_, round_, copies_operands_;
  const std::int64_t rows_;
  Surface last_;

  at::Tensor matrix(std::int64_t columns) const { return at::empty({rows_, columns}, embedding_.options()); }

 private:
  struct Layer {
    at::Tensor product, hidden;                                           // [rows, width]; hidden is an operand
    at::Tensor normal, inverse, grad_hidden, grad_product, grad_operand;  // backward only
    Activation arguments;
  };

  at::Tensor operand_matrix(std::int64_t columns) const {
    return copies_operands_ ? matrix(columns).to(at::kBFloat16) : matrix(columns);
  }
  // The operands that hold `values`, which the kernels store beside them or which take their place.
  at::Tensor gradient_operand(const at::Tensor& values, kernels::Operands<Real>& to) const {
    if (!copies_operands_) return values;
    const at::Tensor operand = operand_matrix(values.size(1));
    to.bf16 = data<std::uint16_t>(operand);
    return operand;
  }
  const Real* parameter(const std::string& name) {
    inputs_.set(name, inputs_[name].contiguous());
    return inputs_[name].template const_data_ptr<Real>();
  }
  Real* gradient(const std::string& name) const { return data<Real>(results_["grad_" + name]); }

  void prepare(Layer& layer, std::int64_t width, const std::string& number) {
    layer.product = matrix(width);
    layer.hidden = operand_matrix(width);
    layer.arguments = {.rows = rows_,
                       .width = width,
                       .bias = parameter("bias_" + number),
                       .gain = parameter("gain_" + number),
                       .shift = parameter("shift_" + number),
                       .product = data<Real>(layer.product),
                       .hidden = operands<Real>(layer.hidden)};
    if (!backward_) return;
    for (at::Tensor* buffer : {&layer.normal, &layer.grad_hidden, &layer.grad_product}) *buffer = matrix(width);
    layer.inverse = matrix(1);
    Activation& a = layer.arguments;
    a.normal = data<Real>(layer.normal);
    a.inverse = data<Real>(layer.inverse);
    a.grad_hidden = data<Real>(layer.grad_hidden);
    a.grad_product.plain = data<Real>(layer.grad_product);
    layer.grad_operand = gradient_operand(layer.grad_product, a.grad_product);
    a.grad_bias = gradient("bias_" + number);
    a.grad_gain = gradient("gain_" + number);
    a.grad_shift = gradient("shift_" + number);
  }

  void run_backward() {
    surface_backward(last_);
    multiply(grad_weights_[2], grad_operand_.t(), layers_[1].hidden);
    multiply(layers_[1].grad_hidden, grad_operand_, weights_[2]);
    for (const std::size_t i : {1, 0}) {
      const Layer& layer = layers_[i];
      activate_backward(layer.arguments);
      multiply(grad_weights_[i], layer.grad_operand.t(), i == 0 ? x_ : layers_[0].hidden);
      multiply(i == 0 ? grad_embedding_ : layers_[0].grad_hidden, layer.grad_operand, weights_[i]);
    }
  }

  NamedTensors inputs_;  // kept alive: the arguments point into them
  at::Tensor embedding_;
  NamedTensors results_;
  std::vector<at::Tensor> weights_;
  bool gathers_ = false;
  at::Tensor x_, last_product_, grad_operand_, grad_embedding_;
  std::vector<at::Tensor> grad_weights_;  // those in results_
  std::array<Layer, 2> layers_;
};

}  // namespace twinbench::energy_flow::embedding_mapper
