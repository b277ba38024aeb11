// The text encoder's pass: set-up, forward, backward.
#include "optimized/energy_flow/common/text_encoder_pass.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "optimized/common/tensors.h"

namespace twinbench::energy_flow {

template <class Real>
TextEncoderPass<Real>::TextEncoderPass(const NamedTensors& inputs, const Setting& setting, at::ScalarType operand_type,
                                       const at::Tensor& surface, const NamedTensors& gradients)
    : round_(rounds_operands(setting)),
      products_add_(!round_ && setting.device.takes_cuda_path()),
      backward_(setting.backward()),
      texts_(setting.size("batch")),
      model_(setting.size("model")),
      heads_(setting.size("heads")),
      ff_(setting.size("ff")),
      cells_(setting.size("cells")),
      tokens_(inputs, setting),
      positions_(setting.size("positions")),
      vocabulary_(setting.size("vocabulary")),
      operand_type_(operand_type),
      inputs_(inputs),
      gradients_(gradients),
      options_(inputs["embedding"].options()),
      surface_out_(surface) {
  prepare_dropout(setting);
  x_ = operand(tokens_.capacity(), model_);
  product_ = matrix(tokens_.capacity(), model_);
  embed_ = {.rows = tokens_.capacity(),
            .width = model_,
            .tokens = tokens_.rows(),
            .embedding = given_values("embedding"),
            .position = given_values("position"),
            .out = stored(x_)};
  if (backward_) prepare_backward();
  layers_.resize(static_cast<std::size_t>(setting.size("layers")));
  for (std::size_t i = 0; i < layers_.size(); ++i)
    prepare(layers_[i], i == 0 ? x_ : layers_[i - 1].x, "_" + std::to_string(i));
  prepare_projection();
}

// Zeros: where kernels are counted by a sample of their blocks, the others leave what is here.
template <class Real>
at::Tensor TextEncoderPass<Real>::matrix(std::int64_t rows, std::int64_t columns) {
  kept_.push_back(at::zeros({rows, columns}, options_));
  return kept_.back();
}

template <class Real>
auto TextEncoderPass<Real>::operand(std::int64_t rows, std::int64_t columns) -> Operand {
  const at::Tensor exact = matrix(rows, columns);
  return {exact, round_ ? at::zeros({rows, columns}, options_.dtype(operand_type_)) : exact};
}

template <class Real>
kernels::Operands<Real> TextEncoderPass<Real>::stored(const Operand& operand) const {
  const bool bits = operand.factor.scalar_type() == at::kBFloat16;
  return {.plain = data<Real>(operand.exact), .bf16 = bits ? data<std::uint16_t>(operand.factor) : nullptr};
}

template <class Real>
const Real* TextEncoderPass<Real>::given_values(const std::string& name) {
  return given<Real>(inputs_, name);
}

template <class Real>
Real* TextEncoderPass<Real>::gradient(const std::string& name) const {
  return data<Real>(gradients_["grad_" + name]);
}

template <class Real>
auto TextEncoderPass<Real>::linear(const std::string& name, const std::string& suffix, bool may_add) -> Linear {
  const std::string weight = name + "_weight" + suffix, bias = name + "_bias" + suffix;
  const at::Tensor exact = inputs_[weight].contiguous();
  Linear result{.weight = {exact, round_ ? at::empty_like(exact, exact.options().dtype(operand_type_)) : exact},
                .bias = given_values(bias)};
  if (may_add && products_add_) result.bias = nullptr, result.of_product = inputs_[bias].contiguous();
  weights_.push_back(result.weight);
  if (!backward_) return result;
  result.grad_weight = gradients_["grad_" + weight];
  result.grad_bias = gradients_["grad_" + bias];
  return result;
}

template <class Real>
ResidualNorm<Real> TextEncoderPass<Real>::residual_norm(const Operand& x, const Linear& linear, const std::string& gain,
                                                        const std::string& shift, const Operand& out,
                                                        const std::string& bias, std::int64_t site) {
  ResidualNorm<Real> step{.rows = tokens_.capacity(),
                          .width = model_,
                          .x = data<Real>(x.exact),
                          .product = data<Real>(product_),
                          .bias = linear.bias,
                          .gain = given_values(gain),
                          .shift = given_values(shift),
                          .out = stored(out),
                          .tokens = tokens_.rows(),
                          .dropout = dropout(site)};
  if (!backward_) return step;
  step.normal = data<Real>(matrix(tokens_.capacity(), model_));
  step.inverse = data<Real>(matrix(tokens_.capacity(), 1));
  step.gradient = data<Real>(grad_branch_);
  step.grad_bias = gradient(bias);
  step.grad_gain = gradient(gain);
  step.grad_shift = gradient(shift);
  return step;
}

template <class Real>
void TextEncoderPass<Real>::prepare_dropout(const Setting& setting) {
  const double rate = setting.option("dropout");
  const at::Tensor keys = inputs_["sample_key"].contiguous();
  kept_.push_back(keys);
  dropout_ = {.on = rate > 0,
              .seed = static_cast<std::uint64_t>(setting.option("seed")),
              .attempt = static_cast<std::uint32_t>(setting.option("attempt")),
              .rate = static_cast<float>(rate),
              .scale = static_cast<Real>(1 / (1 - rate)),
              .sample_key = keys.const_data_ptr<std::int64_t>()};
}

template <class Real>
Dropout<Real> TextEncoderPass<Real>::dropout(std::int64_t site) const {
  Dropout<Real> result = dropout_;
  result.site = static_cast<std::uint32_t>(site);
  return result;
}

template <class Real>
void TextEncoderPass<Real>::prepare(Layer& layer, const Operand& x, const std::string& suffix) {
  layer.qkv = linear("qkv", suffix, true);
  layer.out = linear("out", suffix);
  layer.ff_in = linear("ff_in", suffix, true);
  layer.ff_out = linear("ff_out", suffix);
  layer.rows = matrix(tokens_.capacity(), 3 * model_);
  layer.before = matrix(tokens_.capacity(), ff_);
  layer.attended = operand(tokens_.capacity(), model_);
  layer.between = operand(tokens_.capacity(), model_);
  layer.hidden = operand(tokens_.capacity(), ff_);
  layer.x = operand(tokens_.capacity(), model_);
  const std::int64_t site = 2 * (&layer - layers_.data());
  layer.first =
      residual_norm(x, layer.out, "gain_1" + suffix, "shift_1" + suffix, layer.between, "out_bias" + suffix, site);
  layer.second = residual_norm(layer.between, layer.ff_out, "gain_2" + suffix, "shift_2" + suffix, layer.x,
                               "ff_out_bias" + suffix, site + 1);
  const std::int64_t width = model_ / heads_, most = texts_ > 0 ? tokens_.capacity() / texts_ : 0;
  const auto part = [&](const at::Tensor& rows, std::int64_t number) {
    return HeadRows<Real>{data<Real>(rows) + number * model_, 0, width, 3 * model_};
  };
  const auto read = [](const HeadRows<Real>& rows) {
    return HeadRows<const Real>{rows.data, rows.of_sample, rows.of_head, rows.of_row};
  };
  const TokenRows tokens = tokens_.rows();
  layer.attention = {.batch = static_cast<int>(texts_),
                     .heads = static_cast<int>(heads_),
                     .queries = static_cast<int>(most),
                     .keys = static_cast<int>(most),
                     .width = static_cast<int>(width),
                     .scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(width))),
                     .round = round_,
                     .query = read(part(layer.rows, 0)),
                     .key = read(part(layer.rows, 1)),
                     .value = read(part(layer.rows, 2)),
                     .first_row = tokens.first_row,
                     .length = tokens.length,
                     .out = {data<Real>(layer.attended.exact), 0, width, model_}};
  if (!backward_) return;
  layer.grad_second = operand(tokens_.capacity(), model_);
  layer.grad_before = operand(tokens_.capacity(), ff_);
  layer.grad_first = operand(tokens_.capacity(), model_);
  layer.grad_rows = operand(tokens_.capacity(), 3 * model_);
  const auto back = [&](ResidualNorm<Real>& norm, const Operand& of_product, at::Tensor& of_sum) {
    of_sum = dropout_.on ? matrix(tokens_.capacity(), model_) : of_product.exact;
    norm.grad_sum = data<Real>(of_sum);
    norm.grad_product = stored(of_product);
    if (!dropout_.on) norm.grad_product.plain = nullptr;
  };
  back(layer.first, layer.grad_first, layer.grad_sum_first);
  back(layer.second, layer.grad_second, layer.grad_sum_second);
  layer.first.other_gradient = data<Real>(layer.grad_sum_second);  // past the feed-forward part
  const std::int64_t statistics = texts_ * heads_ * most;
  Attention<Real>& a = layer.attention;
  a.largest = data<Real>(matrix(1, statistics));
  a.denominator = data<Real>(matrix(1, statistics));
  a.share = data<Real>(matrix(1, statistics));
  a.grad_out = {data<Real>(grad_attended_), 0, width, model_};
  a.grad_query = part(layer.grad_rows.exact, 0);
  a.grad_key = part(layer.grad_rows.exact, 1);
  a.grad_value = part(layer.grad_rows.exact, 2);
}

template <class Real>
void TextEncoderPass<Real>::prepare_projection() {
  projection_ = linear("projection", "", true);
  surface_ = linear("surface", "", true);
  mean_operand_ = operand(texts_, model_);
  normal_ = operand(texts_, model_);
  projected_ = matrix(texts_, model_);
  mean_ = {.rows = tokens_.capacity(),
           .texts = texts_,
           .width = model_,
           .tokens = tokens_.rows(),
           .x = data<Real>(layers_.back().x.exact),
           .out = stored(mean_operand_)};
  activated_ = matrix(texts_, model_);
  gelu_ = {.rows = texts_,
           .width = model_,
           .step = EncoderStep::kGelu,
           .product = data<Real>(projected_),
           .bias = projection_.bias,
           .dropout = dropout(2 * static_cast<std::int64_t>(layers_.size())),
           .out = {.plain = data<Real>(activated_)}};
  last_ = {.rows = texts_,
           .width = model_,
           .x = data<Real>(activated_),
           .gain = given_values("gain_last"),
           .shift = given_values("shift_last"),
           .out = stored(normal_)};
  tanh_ = {.rows = texts_,
           .width = cells_,
           .step = EncoderStep::kTanh,
           .product = data<Real>(surface_out_),
           .bias = surface_.bias,
           .out = {.plain = data<Real>(surface_out_)}};
  if (!backward_) return;
  grad_surface_ = operand(texts_, cells_);
  grad_projected_ = operand(texts_, model_);
  grad_normal_ = matrix(texts_, model_);
  grad_mean_ = matrix(texts_, model_);
  grad_activated_ = matrix(texts_, model_);
  last_.normal = data<Real>(matrix(texts_, model_));
  last_.inverse = data<Real>(matrix(texts_, 1));
  last_.gradient = data<Real>(grad_normal_);
  last_.grad_sum = data<Real>(grad_activated_);
  last_.grad_gain = gradient("gain_last");
  last_.grad_shift = gradient("shift_last");
  mean_.gradient = data<Real>(grad_mean_);
  mean_.grad_x = data<Real>(grad_branch_);
}

template <class Real>
void TextEncoderPass<Real>::prepare_backward() {
  grad_branch_ = matrix(tokens_.capacity(), model_);
  grad_hidden_ = matrix(tokens_.capacity(), ff_);
  grad_attended_ = matrix(tokens_.capacity(), model_);
}

template <class Real>
void TextEncoderPass<Real>::refresh() {
  for (const Operand& weight : weights_) round(weight);
}

template <class Real>
void TextEncoderPass<Real>::set_attempt(std::uint32_t attempt) {
  for (Layer& layer : layers_) layer.first.dropout.attempt = layer.second.dropout.attempt = attempt;
  gelu_.dropout.attempt = attempt;
}

template <class Real>
void TextEncoderPass<Real>::count_rows() {
  const std::int64_t rows = tokens_.count();
  embed_.rows = mean_.rows = rows;
  for (Layer& layer : layers_) layer.first.rows = layer.second.rows = rows;
}

template <class Real>
void TextEncoderPass<Real>::forward() {
  if (texts_ == 0) return;
  tokens_.read();
  count_rows();
  embed(embed_);
  finish(x_);
  const Operand* x = &x_;
  for (Layer& layer : layers_) {
    times(*x, layer.qkv, layer.rows);
    if (layer.qkv.bias)
      elements({.rows = tokens_.count(),
                .width = 3 * model_,
                .step = EncoderStep::kBias,
                .product = data<Real>(layer.rows),
                .bias = layer.qkv.bias,
                .out = {.plain = data<Real>(layer.rows)}});
    if (backward_) clear_padding(layer.attended.exact);  // gradients of weights are sums over all rows
    attend(layer.attention);
    round(layer.attended);
    times(layer.attended, layer.out, product_);
    norm(layer.first);
    finish(layer.between);
    times(layer.between, layer.ff_in, layer.before);
    elements({.rows = tokens_.count(),
              .width = ff_,
              .step = EncoderStep::kGelu,
              .product = data<Real>(layer.before),
              .bias = layer.ff_in.bias,
              .out = stored(layer.hidden)});
    finish(layer.hidden);
    times(layer.hidden, layer.ff_out, product_);
    norm(layer.second);
    finish(layer.x);
    x = &layer.x;
  }
  mean(mean_);
  finish(mean_operand_);
  times(mean_operand_, projection_, projected_);
  elements(gelu_);
  norm(last_);
  finish(normal_);
  times(normal_, surface_, surface_out_);
  elements(tanh_);
}

template <class Real>
void TextEncoderPass<Real>::backward() {
  if (texts_ == 0) return;
  elements({.rows = texts_,
            .width = cells_,
            .step = EncoderStep::kTanhBack,
            .product = data<Real>(surface_out_),
            .gradient = strided_rows<Real>(inputs_["grad_surface"]),
            .out = stored(grad_surface_)});
  finish(grad_surface_);
  column_sums(grad_surface_.exact, surface_.grad_bias);
  times_back(grad_surface_, normal_, surface_, grad_normal_);
  norm_back(last_);
  elements({.rows = texts_,
            .width = model_,
            .step = EncoderStep::kGeluBack,
            .product = gelu_.product,
            .bias = gelu_.bias,
            .gradient = strided_rows<Real>(grad_activated_),
            .dropout = gelu_.dropout,
            .out = stored(grad_projected_)});
  finish(grad_projected_);
  column_sums(grad_projected_.exact, projection_.grad_bias);
  times_back(grad_projected_, mean_operand_, projection_, grad_mean_);
  mean_back(mean_);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    // Past the layer's attention, where there is a layer above.
    layers_[i].second.other_gradient = i + 1 < layers_.size() ? data<Real>(layers_[i + 1].grad_sum_first) : nullptr;
    layer_back(layers_[i], i == 0 ? x_ : layers_[i - 1].x);
  }
  const auto table = [&](const char* name, std::int64_t entries, const std::int32_t* entry) {
    return TableGradient<Real>{.rows = tokens_.count(),
                               .texts = texts_,
                               .entries = entries,
                               .width = model_,
                               .tokens = tokens_.rows(),
                               .entry = entry,
                               .first = data<Real>(grad_branch_),
                               .second = data<Real>(layers_.front().grad_sum_first),
                               .sums = data<Real>(gradients_[name])};
  };
  table_gradient(table("grad_embedding", vocabulary_, tokens_.rows().id));
  place_gradient(table("grad_position", positions_, tokens_.rows().place));
}

template <class Real>
void TextEncoderPass<Real>::layer_back(Layer& layer, const Operand& x) {
  norm_back(layer.second);
  finish(layer.grad_second);
  times_back(layer.grad_second, layer.hidden, layer.ff_out, grad_hidden_);
  elements({.rows = tokens_.count(),
            .width = ff_,
            .step = EncoderStep::kGeluBack,
            .product = data<Real>(layer.before),
            .bias = layer.ff_in.bias,
            .gradient = strided_rows<Real>(grad_hidden_),
            .out = stored(layer.grad_before)});
  finish(layer.grad_before);
  column_sums(used(layer.grad_before.exact), layer.ff_in.grad_bias);
  times_back(layer.grad_before, layer.between, layer.ff_in, grad_branch_);
  norm_back(layer.first);
  finish(layer.grad_first);
  times_back(layer.grad_first, layer.attended, layer.out, grad_attended_);
  clear_padding(layer.grad_rows.exact);
  attend_back(layer.attention);
  round(layer.grad_rows);
  column_sums(used(layer.grad_rows.exact), layer.qkv.grad_bias);
  times_back(layer.grad_rows, x, layer.qkv, grad_branch_);
}

template class TextEncoderPass<float>;
template class TextEncoderPass<double>;

}  // namespace twinbench::energy_flow
