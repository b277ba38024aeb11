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
#include "optimized/common/two_halves.h"

namespace twinbench::energy_flow::embedding_mapper {

template <class Real>
class Mapper : public TwoHalves {
 public:
  // operand_type: what the products take in bf16 mode; in fp32 the rounded values take the place of the exact ones.
  Mapper(const NamedTensors& inputs, const Setting& setting, at::ScalarType operand_type)
      : setting_(setting),
        round_(rounds_operands(setting)),
        copies_operands_(round_ && operand_type == at::kBFloat16),
        tf32_(setting.dtype == Dtype::kTf32),
        rows_(setting.size("rows")),
        inputs_(inputs),
        embedding_(inputs["embedding"]),
        forward_results_(zero_results(forward_of(setting))) {
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
             .product = {.plain = data<Real>(last_product_)},
             .surface = data<Real>(forward_results_["surface"])};
    if (!setting.backward()) return;
    grad_operand_ = gradient_operand(last_product_, last_.product);
    last_.gradient = strided_rows<Real>(inputs["grad_surface"]);
    write_gradients_to(zero_results(setting));
  }

  void run() override {
    if (rows_ == 0) return;
    const at::NoGradGuard no_tape;
    run_layers();
    if (setting_.backward())
      run_layers_backward();
    else
      surface(last_);
  }

  void run_forward() override {
    if (rows_ == 0) return;
    const at::NoGradGuard no_tape;
    run_layers();
    surface(last_);
  }
  void run_backward() override {
    if (rows_ == 0) return;
    const at::NoGradGuard no_tape;
    run_layers_backward();
  }

  NamedTensors forward_outputs() override { return forward_results_; }
  std::vector<at::Tensor> kept() override {
    std::vector<at::Tensor> kept = {last_product_};
    if (gathers_) kept.push_back(x_);
    for (const Layer& layer : layers_)
      kept.insert(kept.end(), {layer.product, layer.hidden, layer.normal, layer.inverse});
    return kept;
  }
  NamedTensors outputs() override { return setting_.backward() ? gradients_ : forward_results_; }
  NamedTensors give_outputs() override {
    NamedTensors given = outputs();
    write_gradients_to(rows_ > 0 ? empty_results(setting_) : zero_results(setting_));
    return given;
  }

 protected:
  using Activation = kernels::ActivationLayer<Real>;
  using Surface = SurfaceArguments<Real>;

  virtual void gather(const kernels::StridedRows<Real>& from, const at::Tensor& to) = 0;     // to: operands
  virtual void product(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out) = 0;  // x * weight^T
  virtual void activate(const Activation& layer) = 0;
  virtual void activate_backward(const Activation& layer) = 0;  // column sums too; grad_product ends as operands
  virtual void surface(const Surface& last) = 0;
  virtual void surface_backward(const Surface& last) = 0;  // likewise

  const Setting setting_;
  const bool round_, copies_operands_, tf32_;
  const std::int64_t rows_;
  Surface last_;

  // Zeros: what the library's products store by bulk copies compute-sanitizer does not see.
  at::Tensor matrix(std::int64_t columns) const { return at::zeros({rows_, columns}, embedding_.options()); }

 private:
  struct Layer {
    at::Tensor product, hidden;                                           // [rows, width]; hidden is an operand
    at::Tensor normal, inverse, grad_hidden, grad_product, grad_operand;  // backward only
    Activation arguments;
  };

  at::Tensor operand_matrix(std::int64_t columns) const {
    return copies_operands_ ? at::empty({rows_, columns}, embedding_.options().dtype(at::kBFloat16)) : matrix(columns);
  }
  // The operands that hold `values`, which the kernels store beside them or which take their place.
  at::Tensor gradient_operand(const at::Tensor& values, kernels::Operands<Real>& to) const {
    if (!copies_operands_) return values;
    const at::Tensor operand = operand_matrix(values.size(1));
    to.bf16 = data<std::uint16_t>(operand);
    return operand;
  }
  const Real* parameter(const std::string& name) { return given<Real>(inputs_, name); }

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
    if (!setting_.backward()) return;
    for (at::Tensor* buffer : {&layer.normal, &layer.grad_hidden, &layer.grad_product}) *buffer = matrix(width);
    layer.inverse = matrix(1);
    Activation& a = layer.arguments;
    a.normal = data<Real>(layer.normal);
    a.inverse = data<Real>(layer.inverse);
    a.grad_hidden = data<Real>(layer.grad_hidden);
    a.grad_product.plain = data<Real>(layer.grad_product);
    layer.grad_operand = gradient_operand(layer.grad_product, a.grad_product);
  }

  void write_gradients_to(NamedTensors gradients) {
    const auto gradient = [&](const std::string& name) { return data<Real>(gradients["grad_" + name]); };
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Activation& a = layers_[i].arguments;
      const std::string number = std::to_string(i + 1);
      a.grad_bias = gradient("bias_" + number);
      a.grad_gain = gradient("gain_" + number);
      a.grad_shift = gradient("shift_" + number);
    }
    last_.grad_bias = gradient("bias_3");
    last_.grad_cell = gradient("cell_offset");
    last_.grad_scale = gradient("scale");
    last_.grad_offset = gradient("offset");
    grad_weights_ = {gradients["grad_weight_1"], gradients["grad_weight_2"], gradients["grad_weight_3"]};
    grad_embedding_ = gradients["grad_embedding"];
    gradients_ = std::move(gradients);
  }

  void run_layers() {
    if (gathers_) gather(strided_rows<Real>(embedding_), x_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      product(i == 0 ? x_ : layers_[i - 1].hidden, weights_[i], layers_[i].product);
      activate(layers_[i].arguments);
    }
    product(layers_[1].hidden, weights_[2], last_product_);
  }

  void run_layers_backward() {
    surface_backward(last_);
    multiply(grad_weights_[2], grad_operand_.t(), layers_[1].hidden, tf32_);
    multiply(layers_[1].grad_hidden, grad_operand_, weights_[2], tf32_);
    for (const std::size_t i : {1, 0}) {
      const Layer& layer = layers_[i];
      activate_backward(layer.arguments);
      multiply(grad_weights_[i], layer.grad_operand.t(), i == 0 ? x_ : layers_[0].hidden, tf32_);
      multiply(i == 0 ? grad_embedding_ : layers_[0].grad_hidden, layer.grad_operand, weights_[i], tf32_);
    }
  }

  NamedTensors inputs_;  // kept alive: the arguments point into them
  at::Tensor embedding_;
  NamedTensors forward_results_, gradients_;
  std::vector<at::Tensor> weights_;
  bool gathers_ = false;
  at::Tensor x_, last_product_, grad_operand_, grad_embedding_;
  std::vector<at::Tensor> grad_weights_;  // those in gradients_
  std::array<Layer, 2> layers_;
};

}  // namespace twinbench::energy_flow::embedding_mapper
