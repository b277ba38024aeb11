// Optimized energy_flow.embedding_mapper on the CPU: all rows through each matrix product at once, fused loops between.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "src/common/cpu_clones.h"
#include "kernels/energy_flow/embedding_mapper/math.h"
#include "optimized/energy_flow/embedding_mapper/inputs.h"
#include "optimized/energy_flow/embedding_mapper/product.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

namespace mapper = energy_flow::embedding_mapper;


// to[row][i] = operand(from[row][i]) for a matrix of any strides.
template <class Real>
TWINBENCH_CPU_CLONES void gather(std::int64_t rows, std::int64_t columns, const Real* from, std::int64_t row_stride,
                                 std::int64_t column_stride, bool round, Real* __restrict to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < columns; ++i)
      to[row * columns + i] = from[row * row_stride + i * column_stride];
  }
  if (round)
    for (std::int64_t i = 0; i < rows * columns; ++i) to[i] = kernels::round_to_bf16(to[i]);
}

// One activation layer of all rows: what its loops read and write. [rows, width] unless said otherwise.
template <class Real>
struct Layer {
  std::int64_t width = 0;
  const Real *bias = nullptr, *gain = nullptr, *shift = nullptr;  // [width]
  Real* product = nullptr;  // on entry the matrix product, on exit normalised
  Real* hidden = nullptr;   // the next product's operand
  // Backward only.
  Real* before = nullptr;         // what GELU was applied to
  Real* inverse = nullptr;        // [rows]
  Real* grad_hidden = nullptr;    // gradient of hidden
  Real* grad_product = nullptr;   // gradient of the matrix product, an operand after its biases were summed
  Real *grad_bias = nullptr, *grad_gain = nullptr, *grad_shift = nullptr;  // [width]
};

template <class Real>
TWINBENCH_CPU_CLONES void activate(const Layer<Real>& layer, std::int64_t begin, std::int64_t end, bool round) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = row * layer.width;
    const Real inverse = mapper::activation_row(layer.width, layer.product + at, layer.bias, layer.gain, layer.shift, round,
                                                 layer.before ? layer.before + at : nullptr, layer.hidden + at);
    if (layer.inverse) layer.inverse[row] = inverse;
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void activate_backward(const Layer<Real>& layer, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = row * layer.width;
    mapper::activation_backward_row(layer.width, layer.grad_hidden + at, layer.product + at, layer.before + at, layer.gain,
                                    layer.inverse[row], layer.grad_product + at);
  }
}

// Column sums over the rows, in row order, for columns [begin, end); then grad_product becomes an operand there.
template <class Real>
TWINBENCH_CPU_CLONES void sum_columns(const Layer<Real>& layer, std::int64_t rows, std::int64_t begin, std::int64_t end,
                                      bool round) {
  std::fill(layer.grad_bias + begin, layer.grad_bias + end, Real(0));
  std::fill(layer.grad_gain + begin, layer.grad_gain + end, Real(0));
  std::fill(layer.grad_shift + begin, layer.grad_shift + end, Real(0));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * layer.width;
    for (std::int64_t i = begin; i < end; ++i) {
      layer.grad_bias[i] += layer.grad_product[at + i];
      layer.grad_gain[i] += layer.grad_hidden[at + i] * layer.product[at + i];
      layer.grad_shift[i] += layer.grad_hidden[at + i];
    }
    if (round)
      for (std::int64_t i = begin; i < end; ++i)
        layer.grad_product[at + i] = kernels::round_to_bf16(layer.grad_product[at + i]);
  }
}

// The last layer of all rows.
template <class Real>
struct Surface {
  std::int64_t width = 0;
  const Real *bias = nullptr, *cell_offset = nullptr;  // [width]
  const Real *scale = nullptr, *offset = nullptr;      // [1]
  Real* product = nullptr;  // [rows, width]; in the backward pass its gradient on exit
  Real* surface = nullptr;  // [rows, width], forward
  // Backward only.
  const Real* gradient = nullptr;                      // [rows, width], contiguous
  Real *grad_bias = nullptr, *grad_cell = nullptr;     // [width]
  double *scale_terms = nullptr, *offset_terms = nullptr;  // [rows], summed afterwards
};

template <class Real>
TWINBENCH_CPU_CLONES void finish_surface(const Surface<Real>& s, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row)
    mapper::surface_row(s.width, s.product + row * s.width, s.bias, s.cell_offset, *s.scale, *s.offset,
                        s.surface + row * s.width);
}

template <class Real>
TWINBENCH_CPU_CLONES void surface_backward(const Surface<Real>& s, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    Real* __restrict product = s.product + row * s.width;
    const Real* __restrict gradient = s.gradient + row * s.width;
    for (std::int64_t i = 0; i < s.width; ++i) product[i] = kernels::tanh(product[i] + s.bias[i]);
    s.scale_terms[row] = mapper::row_sum<double>(s.width, [=](std::int64_t i) { return double{gradient[i]} * double{product[i]}; });
    s.offset_terms[row] = mapper::row_sum<double>(s.width, [=](std::int64_t i) { return double{gradient[i]}; });
    for (std::int64_t i = 0; i < s.width; ++i) product[i] = mapper::cell_gradient(gradient[i], product[i], *s.scale);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void sum_cells(const Surface<Real>& s, std::int64_t rows, std::int64_t begin, std::int64_t end, bool round) {
  std::fill(s.grad_bias + begin, s.grad_bias + end, Real(0));
  std::fill(s.grad_cell + begin, s.grad_cell + end, Real(0));
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t at = row * s.width;
    for (std::int64_t i = begin; i < end; ++i) {
      s.grad_bias[i] += s.product[at + i];
      s.grad_cell[i] += s.gradient[at + i];
    }
    if (round)
      for (std::int64_t i = begin; i < end; ++i) s.product[at + i] = kernels::round_to_bf16(s.product[at + i]);
  }
}

template <class Real>
class EmbeddingMapperOptimized : public Runnable {
 public:
  EmbeddingMapperOptimized(const NamedTensors& inputs, const Setting& setting) : m_(energy_flow::embedding_mapper::mapper_inputs(inputs, setting)) {
    const auto matrix = [&](std::int64_t columns) { return at::empty({m_.rows, columns}, kReal); };
    x_ = matrix(m_.embedding);
    product_1_ = matrix(m_.inner);
    hidden_1_ = matrix(m_.inner);
    product_2_ = matrix(m_.middle);
    hidden_2_ = matrix(m_.middle);
    product_3_ = matrix(m_.cells);
    layer_1_ = {m_.inner, read(m_.bias_1), read(m_.gain_1), read(m_.shift_1), data(product_1_), data(hidden_1_)};
    layer_2_ = {m_.middle, read(m_.bias_2), read(m_.gain_2), read(m_.shift_2), data(product_2_), data(hidden_2_)};
    last_ = {m_.cells, read(m_.bias_3), read(m_.cell_offset), read(m_.scale), read(m_.offset), data(product_3_)};
    if (m_.backward) {
      prepare_backward(inputs);
    } else {
      surface_ = matrix(m_.cells);
      last_.surface = data(surface_);
    }
  }

  void run() override {
    if (m_.rows == 0) return;
    at::NoGradGuard no_tape;
    gather(m_.rows, m_.embedding, read(m_.x), m_.x.stride(0), m_.x.stride(1), m_.round, data(x_));
    product(x_, m_.weight_1, product_1_);
    over_rows(m_.inner, [this](auto begin, auto end) { activate(layer_1_, begin, end, m_.round); });
    product(hidden_1_, m_.weight_2, product_2_);
    over_rows(m_.middle, [this](auto begin, auto end) { activate(layer_2_, begin, end, m_.round); });
    product(hidden_2_, m_.weight_3, product_3_);
    if (m_.backward)
      run_backward();
    else
      over_rows(m_.cells, [this](auto begin, auto end) { finish_surface(last_, begin, end); });
  }

  NamedTensors outputs() override { return m_.backward ? gradients_ : NamedTensors{{"surface", surface_}}; }

 private:
  static constexpr at::ScalarType kReal = c10::CppTypeToScalarType<Real>::value;
  static Real* data(at::Tensor& tensor) { return tensor.mutable_data_ptr<Real>(); }
  static const Real* read(const at::Tensor& tensor) { return tensor.const_data_ptr<Real>(); }

  static constexpr std::int64_t kGrain = 65536;  // elements of a row loop that pay for waking a thread
  static constexpr std::int64_t kProductGrain = 4 << 20;  // multiply-adds that do

  template <class Body>
  void over_rows(std::int64_t width, Body body) {
    at::parallel_for(0, m_.rows, std::max<std::int64_t>(1, kGrain / width), body);
  }
  template <class Body>
  void over_columns(std::int64_t width, Body body) {
    at::parallel_for(0, width, std::max<std::int64_t>(64, kGrain / m_.rows), body);
  }

  // out = x * weight^T, the weight's rows shared among threads in blocks of four.
  static void product(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out) {
    const std::int64_t rows = x.size(0), inner = x.size(1), columns = weight.size(0);
    const std::int64_t grain = std::max<std::int64_t>(1, kProductGrain / (4 * rows * inner));
    at::parallel_for(0, (columns + 3) / 4, grain, [&](std::int64_t begin, std::int64_t end) {
      energy_flow::embedding_mapper::multiply_transposed(rows, read(x), read(weight), inner, columns, 4 * begin, std::min(columns, 4 * end),
                                       out.mutable_data_ptr<Real>());
    });
  }

  void prepare_backward(const NamedTensors& inputs) {
    gradients_.set("grad_embedding", at::zeros({m_.rows, m_.embedding}, kReal));
    for (const char* name : {"weight_1", "bias_1", "gain_1", "shift_1", "weight_2", "bias_2", "gain_2", "shift_2", "weight_3",
                             "bias_3", "scale", "offset", "cell_offset"})
      gradients_.set(std::string("grad_") + name, at::zeros(inputs[name].sizes(), kReal));
    const auto extend = [&](Layer<Real>& layer, const std::string& number, std::array<at::Tensor, 4>& space) {
      for (auto& tensor : space) tensor = at::empty({m_.rows, layer.width}, kReal);
      layer.before = data(space[0]);
      layer.inverse = data(space[1]);
      layer.grad_hidden = data(space[2]);
      layer.grad_product = data(space[3]);
      layer.grad_bias = gradient("bias_" + number);
      layer.grad_gain = gradient("gain_" + number);
      layer.grad_shift = gradient("shift_" + number);
    };
    extend(layer_1_, "1", space_1_);
    extend(layer_2_, "2", space_2_);
    grad_surface_ = at::empty({m_.rows, m_.cells}, kReal);
    terms_ = at::empty({2, m_.rows}, at::kDouble);
    last_.gradient = read(grad_surface_);
    last_.grad_bias = gradient("bias_3");
    last_.grad_cell = gradient("cell_offset");
    last_.scale_terms = terms_.mutable_data_ptr<double>();
    last_.offset_terms = last_.scale_terms + m_.rows;
    for (const std::string number : {"1", "2", "3"})
      grad_weights_.push_back(gradients_["grad_weight_" + number]);
    grad_embedding_ = gradients_["grad_embedding"];
  }

  Real* gradient(const std::string& name) { return gradients_["grad_" + name].mutable_data_ptr<Real>(); }

  void run_backward() {
    gather(m_.rows, m_.cells, read(m_.grad_surface), m_.grad_surface.stride(0), m_.grad_surface.stride(1), false,
           data(grad_surface_));
    over_rows(m_.cells, [this](auto begin, auto end) { surface_backward(last_, begin, end); });
    over_columns(m_.cells, [this](auto begin, auto end) { sum_cells(last_, m_.rows, begin, end, m_.round); });
    *gradient("scale") = static_cast<Real>(std::accumulate(last_.scale_terms, last_.scale_terms + m_.rows, 0.0));
    *gradient("offset") = static_cast<Real>(std::accumulate(last_.offset_terms, last_.offset_terms + m_.rows, 0.0));
    at::mm_out(grad_weights_[2], product_3_.t(), hidden_2_);
    at::mm_out(space_2_[2], product_3_, m_.weight_3);
    layer_backward(layer_2_);
    at::mm_out(grad_weights_[1], space_2_[3].t(), hidden_1_);
    at::mm_out(space_1_[2], space_2_[3], m_.weight_2);
    layer_backward(layer_1_);
    at::mm_out(grad_weights_[0], space_1_[3].t(), x_);
    at::mm_out(grad_embedding_, space_1_[3], m_.weight_1);
  }

  void layer_backward(const Layer<Real>& layer) {
    over_rows(layer.width, [&](auto begin, auto end) { activate_backward(layer, begin, end); });
    over_columns(layer.width, [&](auto begin, auto end) { sum_columns(layer, m_.rows, begin, end, m_.round); });
  }

  energy_flow::embedding_mapper::MapperInputs m_;
  at::Tensor x_, product_1_, hidden_1_, product_2_, hidden_2_, product_3_, surface_;
  Layer<Real> layer_1_, layer_2_;
  Surface<Real> last_;
  // Backward only: what GELU saw, 1 / deviation (its first `rows` floats), gradient of hidden, gradient of the product.
  std::array<at::Tensor, 4> space_1_, space_2_;
  at::Tensor grad_surface_, terms_, grad_embedding_;
  std::vector<at::Tensor> grad_weights_;  // views of `gradients_`
  NamedTensors gradients_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<EmbeddingMapperOptimized<double>>(inputs, setting);
  return std::make_unique<EmbeddingMapperOptimized<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::embedding_mapper
