// Optimized energy_flow.embedding_mapper on the CPU: products that stream each weight once, vector loops between them.
#include <numeric>

#include "kernels/common/rows.h"
#include "kernels/energy_flow/embedding_mapper/math.h"
#include "optimized/common/activation_rows.h"
#include "optimized/common/row_product.h"
#include "optimized/common/rows.h"
#include "optimized/energy_flow/embedding_mapper/mapper.h"

namespace twinbench::energy_flow::embedding_mapper {
namespace {

using kernels::ActivationLayer;

template <class Real>
TWINBENCH_CPU_CLONES void activate_backward_rows(const ActivationLayer<Real>& layer, std::int64_t begin,
                                                 std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) kernels::activation_backward_row(layer, row);
}

// Column sums over the rows, in row order, for columns [begin, end); then grad_product becomes an operand there.
template <class Real>
TWINBENCH_CPU_CLONES void sum_layer_columns(const ActivationLayer<Real>& layer, std::int64_t begin, std::int64_t end,
                                            bool round) {
  for (Real* sums : {layer.grad_bias, layer.grad_gain, layer.grad_shift}) std::fill(sums + begin, sums + end, Real(0));
  for (std::int64_t row = 0; row < layer.rows; ++row) {
    const std::int64_t at = row * layer.width;
    Real* product = layer.grad_product.plain + at;
    const Real* __restrict gradient = layer.grad_hidden + at, * __restrict normal = layer.normal + at;
    Real* __restrict gain = layer.grad_gain, * __restrict shift = layer.grad_shift;
    add_row(product + begin, layer.grad_bias + begin, end - begin);
    for (std::int64_t i = begin; i < end; ++i) {
      gain[i] += gradient[i] * normal[i];
      shift[i] += gradient[i];
    }
    if (round) round_in_place(product + begin, end - begin);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void surface_rows(const SurfaceArguments<Real>& s, std::int64_t begin, std::int64_t end) {
  const Real scale = *s.scale, offset = *s.offset;
  for (std::int64_t row = begin; row < end; ++row) {
    const Real* __restrict product = s.product.plain + row * s.width;
    Real* __restrict surface = s.surface + row * s.width;
    for (std::int64_t i = 0; i < s.width; ++i)
      surface[i] = cell_energy(kernels::tanh(product[i] + s.bias[i]), scale, offset, s.cell_offset[i]);
  }
}

// Leaves each row's terms of the scale's and the offset's gradient in `terms` [2, rows].
template <class Real>
TWINBENCH_CPU_CLONES void surface_backward_rows(const SurfaceArguments<Real>& s, std::int64_t begin, std::int64_t end,
                                                double* terms) {
  for (std::int64_t row = begin; row < end; ++row) {
    Real* __restrict product = s.product.plain + row * s.width;
    const Real* __restrict gradient = s.gradient.data + row * s.width;
    for (std::int64_t i = 0; i < s.width; ++i) product[i] = kernels::tanh(product[i] + s.bias[i]);
    terms[row] =
        kernels::row_sum<double>(s.width, [=](std::int64_t i) { return double{gradient[i]} * double{product[i]}; });
    terms[s.rows + row] = kernels::row_sum<double>(s.width, [=](std::int64_t i) { return double{gradient[i]}; });
    for (std::int64_t i = 0; i < s.width; ++i) product[i] = cell_gradient(gradient[i], product[i], *s.scale);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void sum_cells(const SurfaceArguments<Real>& s, std::int64_t begin, std::int64_t end, bool round) {
  for (Real* sums : {s.grad_bias, s.grad_cell}) std::fill(sums + begin, sums + end, Real(0));
  for (std::int64_t row = 0; row < s.rows; ++row) {
    Real* product = s.product.plain + row * s.width;
    add_row(product + begin, s.grad_bias + begin, end - begin);
    add_row(s.gradient.data + row * s.width + begin, s.grad_cell + begin, end - begin);
    if (round) round_in_place(product + begin, end - begin);
  }
}

template <class Real>
class CpuMapper final : public Mapper<Real> {
  using Mapper<Real>::rows_, Mapper<Real>::round_;
  using typename Mapper<Real>::Activation, typename Mapper<Real>::Surface;

 public:
  CpuMapper(const NamedTensors& inputs, const Setting& setting) : Mapper<Real>(inputs, setting, at::kFloat) {
    if (!setting.backward()) return;
    grad_surface_ = this->matrix(setting.size("cells"));
    terms_.resize(2 * static_cast<std::size_t>(rows_));
  }

 private:
  static constexpr std::int64_t kElements = 65536;  // of a row loop that pay for waking a thread

  template <class Body>
  void over_rows(std::int64_t width, Body body) {
    at::parallel_for(0, rows_, grain(width, kElements), body);
  }
  template <class Body>
  void over_columns(std::int64_t width, Body body) {
    at::parallel_for(0, width, std::max<std::int64_t>(64, grain(rows_, kElements)), body);
  }

  void gather(const kernels::StridedRows<Real>& from, const at::Tensor& to) override {
    gather_rows(rows_, to.size(1), from, round_, data<Real>(to));
  }
  void product(const at::Tensor& x, const at::Tensor& weight, at::Tensor& out) override {
    multiply_rows_transposed<Real>(x, weight, out);
  }
  void activate(const Activation& layer) override {
    over_rows(layer.width, [&](auto begin, auto end) { activate_rows(layer, begin, end, round_); });
  }
  void activate_backward(const Activation& layer) override {
    over_rows(layer.width, [&](auto begin, auto end) { activate_backward_rows(layer, begin, end); });
    over_columns(layer.width, [&](auto begin, auto end) { sum_layer_columns(layer, begin, end, round_); });
  }
  void surface(const Surface& last) override {
    over_rows(last.width, [&](auto begin, auto end) { surface_rows(last, begin, end); });
  }
  void surface_backward(const Surface& given) override {
    Surface last = given;
    last.gradient = strided_rows<Real>(grad_surface_);
    gather_rows(rows_, last.width, given.gradient, false, data<Real>(grad_surface_));
    over_rows(last.width, [&](auto begin, auto end) { surface_backward_rows(last, begin, end, terms_.data()); });
    over_columns(last.width, [&](auto begin, auto end) { sum_cells(last, begin, end, round_); });
    *last.grad_scale = static_cast<Real>(std::accumulate(terms_.begin(), terms_.begin() + rows_, 0.0));
    *last.grad_offset = static_cast<Real>(std::accumulate(terms_.begin() + rows_, terms_.end(), 0.0));
  }

  at::Tensor grad_surface_;    // [rows, cells], contiguous
  std::vector<double> terms_;  // [2, rows]
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuMapper<double>>(inputs, setting);
  return std::make_unique<CpuMapper<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::embedding_mapper
