// The text encoder's pass (C18), the same on both paths: products over the tokens of all texts at once, fused steps
// between them. A path says how each step is done.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "kernels/energy_flow/common/attention.h"
#include "kernels/energy_flow/common/encoder_rows.h"
#include "optimized/common/products.h"
#include "optimized/energy_flow/common/text_tokens.h"

namespace twinbench::energy_flow {

// Set up once for so many texts, whose tokens every forward() reads; no run allocates, nor does refresh().
template <class Real>
class TextEncoderPass {
 public:
  virtual ~TextEncoderPass() = default;

  void forward();                           // -> surface
  void backward();                          // after forward(): grad_<parameter>
  void refresh();                           // the weights have changed in place
  void set_attempt(std::uint32_t attempt);  // of the training step, in dropout's key

 protected:
  // A matrix, and as the products take it: in bf16 mode rounded, in memory of its own; else the same.
  struct Operand {
    at::Tensor exact, factor;
    bool rounds() const { return !factor.is_same(exact); }
  };

  // surface [batch, cells] and the gradients are written; `operand_type` is what the products take in bf16 mode. A
  // path's constructor ends with refresh().
  TextEncoderPass(const NamedTensors& inputs, const Setting& setting, at::ScalarType operand_type,
                  const at::Tensor& surface, const NamedTensors& gradients);

  virtual void embed(const EmbedArguments<Real>& step) = 0;
  virtual void elements(const ElementArguments<Real>& step) = 0;
  virtual void norm(const ResidualNorm<Real>& step) = 0;
  virtual void norm_back(const ResidualNorm<Real>& step) = 0;
  virtual void attend(const Attention<Real>& attention) = 0;
  virtual void attend_back(const Attention<Real>& attention) = 0;
  virtual void mean(const MeanArguments<Real>& step) = 0;
  virtual void mean_back(const MeanArguments<Real>& step) = 0;
  virtual void column_sums(const at::Tensor& rows, const at::Tensor& sums) = 0;
  virtual void table_gradient(const TableGradient<Real>& table) = 0;  // of ids
  virtual void place_gradient(const TableGradient<Real>& table) = 0;
  virtual void clear_padding(const at::Tensor& rows) = 0;  // before attention, which leaves them as they are
  virtual void round(const Operand& operand) = 0;          // where it has a factor of its own
  // After a step that wrote `operand`: the same on a path whose steps do not store factors themselves.
  virtual void finish(const Operand& operand) = 0;

  const bool round_, products_add_, backward_;  // products_add_: the library's products add a bias themselves
  const std::int64_t texts_, model_, heads_, ff_, cells_;
  TextTokens tokens_;
  const std::int64_t positions_, vocabulary_;

 private:
  struct Linear {
    Operand weight;
    const Real* bias = nullptr;  // that kernels add; null where the product does
    at::Tensor of_product = {};  // the bias that the product adds
    at::Tensor grad_weight = {}, grad_bias = {};
  };
  struct Layer {
    Linear qkv, out, ff_in, ff_out;
    at::Tensor rows, before;               // [tokens, 3 model], [tokens, ff]: products
    Operand attended, between, hidden, x;  // attention's result; after the first norm; GELU's; after the second
    Operand grad_first, grad_second, grad_before, grad_rows;  // the first two of the products
    at::Tensor grad_sum_first, grad_sum_second;               // of the residuals: without dropout the same
    Attention<Real> attention;
    ResidualNorm<Real> first, second;
  };

  at::Tensor matrix(std::int64_t rows, std::int64_t columns);
  Operand operand(std::int64_t rows, std::int64_t columns);
  kernels::Operands<Real> stored(const Operand& operand) const;
  const Real* given_values(const std::string& name);
  // may_add: nothing else of the layer adds its bias.
  Linear linear(const std::string& name, const std::string& suffix, bool may_add = false);
  Real* gradient(const std::string& name) const;
  ResidualNorm<Real> residual_norm(const Operand& x, const Linear& linear, const std::string& gain,
                                   const std::string& shift, const Operand& out, const std::string& bias,
                                   std::int64_t site);
  void prepare_dropout(const Setting& setting);
  Dropout<Real> dropout(std::int64_t site) const;
  void prepare(Layer& layer, const Operand& x, const std::string& suffix);
  void prepare_projection();
  void prepare_backward();
  void times(const Operand& x, const Linear& linear, const at::Tensor& out) {
    if (linear.of_product.defined())
      multiply_and_add(used(out), used(x.factor), linear.weight.factor.t(), linear.of_product);
    else
      multiply(used(out), used(x.factor), linear.weight.factor.t());
  }
  void times_back(const Operand& gradient, const Operand& x, const Linear& linear, const at::Tensor& grad_x) {
    multiply(linear.grad_weight, used(gradient.factor).t(), used(x.factor));
    multiply(used(grad_x), used(gradient.factor), linear.weight.factor);
  }
  // Of rows that are tokens' those of this run; of texts' all.
  at::Tensor used(const at::Tensor& rows) const {
    return rows.size(0) == tokens_.capacity() && tokens_.count() < tokens_.capacity()
               ? rows.narrow(0, 0, tokens_.count())
               : rows;
  }
  void count_rows();
  void layer_back(Layer& layer, const Operand& x);

  const at::ScalarType operand_type_;
  NamedTensors inputs_, gradients_;
  at::TensorOptions options_;
  std::vector<Operand> weights_;
  EmbedArguments<Real> embed_;
  Operand x_;  // the embedded tokens
  std::vector<Layer> layers_;
  MeanArguments<Real> mean_;
  Operand mean_operand_, grad_projected_, grad_surface_;
  Linear projection_, surface_;
  ElementArguments<Real> gelu_;
  ResidualNorm<Real> last_;
  at::Tensor projected_, activated_, grad_activated_, grad_normal_, surface_out_;
  Operand normal_;
  Dropout<Real> dropout_;
  at::Tensor product_, grad_mean_, grad_branch_, grad_hidden_, grad_attended_;  // shared by the layers
  ElementArguments<Real> tanh_;
  std::vector<at::Tensor> kept_;  // what the arguments point into
};

}  // namespace twinbench::energy_flow
