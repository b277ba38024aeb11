// Optimized sem.cayley on CUDA: one kernel forward; backward two and a product of the library. Rows wider than a
// block's shared memory: the rotation's kernel and a product of the library; backward two and two. 0 reads.
#include <ATen/ATen.h>

#include <optional>

#include "kernels/sem/cayley/arguments.h"
#include "optimized/common/cuda.h"
#include "optimized/sem/cayley/unitary.h"

namespace twinbench::sem::cayley {
namespace {

constexpr double kSingleIsEnough = 1e-3;  // the residual that one product of eleven-bit operands stays below

// As ColumnProduct takes it (arguments.h).
at::Tensor packed(const Unitary& unitary, Operand operand) {
  const std::int64_t dim = unitary.re.size(0), extent = padded(dim), tiles = extent / 16;
  const at::Tensor matrix =
      at::constant_pad_nd(at::stack({unitary.re, unitary.im}), {0, extent - dim, 0, extent - dim}) * kMatrixScale;
  const at::Tensor high = matrix.to(at::kHalf), low = (matrix - high.to(at::kDouble)).to(at::kHalf);
  const at::Tensor halves = operand == Operand::kSplit ? at::stack({high, low}) : high.unsqueeze(0);
  // [half, part, step, upper eight, pair of lanes, place in the word, tile, eight columns, lane group]
  return halves.view({halves.size(0), 2, tiles, 2, 4, 2, tiles, 2, 8})
      .permute({6, 2, 7, 0, 8, 4, 1, 3, 5})
      .contiguous()
      .view({-1})
      .view(at::kInt);
}

// dim beyond kMostDim: what lies between the library's products and the kernels beside them.
class WideProducts {
 public:
  WideProducts(const Unitary& unitary, const at::Tensor& psi, bool tf32, bool backward)
      : matrix_(stacked(unitary.re, unitary.im, at::kFloat)), tf32_(tf32) {
    const std::int64_t rows = psi.size(1), dim = psi.size(2);
    turned_ = at::empty({rows, 2 * dim}, psi.options());
    if (!backward) return;
    parts_ = at::cat({unitary.re, unitary.im}, 1).to(at::kFloat).contiguous();
    products_ = at::empty({2 * rows, 2 * dim}, psi.options());
  }

  float* turned() const { return data<float>(turned_); }
  const float* matrix() const { return matrix_.const_data_ptr<float>(); }
  const float* products() const { return products_.const_data_ptr<float>(); }

  // Plane by plane, each row's both parts times the columns of one.
  void multiply_turned(const at::Tensor& x) const {
    const std::int64_t dim = x.size(2);
    multiply(x, turned_.unsqueeze(0).expand({2, -1, -1}), matrix_.view({2 * dim, 2, dim}).transpose(0, 1), tf32_);
  }
  void multiply_given(const at::Tensor& grad_x) const {
    multiply(products_, grad_x.view({-1, grad_x.size(2)}), parts_, tf32_);
  }

 private:
  at::Tensor matrix_, parts_;  // [2 dim, 2 dim], [dim, 2 dim]
  at::Tensor turned_, products_;
  bool tf32_;
};

class CudaCayley final : public TwoHalves {
 public:
  CudaCayley(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()),
        operand_(!backward_ && setting.option("tolerance") >= kSingleIsEnough ? Operand::kSingle : Operand::kSplit),
        psi_(inputs["psi"].contiguous()),
        alpha_(inputs["alpha"].contiguous()),
        handover_(at::zeros({3}, psi_.options().dtype(at::kInt))),
        forward_results_(zero_results(forward_of(setting))) {
    const std::int64_t rows = setting.size("rows");
    const int dim = static_cast<int>(setting.size("dim"));
    auto* const counters = reinterpret_cast<unsigned*>(data<std::int32_t>(handover_));
    const Unitary unitary = unitary_of(inputs, setting);
    if (dim > kMostDim)
      wide_.emplace(unitary, psi_, operand_ == Operand::kSingle, backward_);
    else
      matrix_ = packed(unitary, operand_);
    const auto* const matrix =
        wide_ ? nullptr : reinterpret_cast<const std::uint32_t*>(matrix_.const_data_ptr<std::int32_t>());
    forward_ = {.rows = rows,
                .dim = dim,
                .psi = psi_.const_data_ptr<float>(),
                .alpha = alpha_.const_data_ptr<float>(),
                .matrix = matrix,
                .x = data<float>(forward_results_["x"]),
                .nonfinite_rows = data<std::int32_t>(forward_results_["nonfinite_rows"]),
                .handover = counters};
    if (!backward_) return;
    const auto options = psi_.options();
    given_ = inputs["grad_x"].contiguous();
    z_ = at::empty({2 * rows, dim}, options);
    y_ = at::empty({2 * rows, dim}, options);
    product_ = at::empty({dim, dim}, options);
    terms_ = at::empty({backward_blocks(rows), dim}, options);
    results_ = zero_results(setting);
    back_ = {.rows = rows,
             .dim = dim,
             .psi = forward_.psi,
             .alpha = forward_.alpha,
             .matrix = matrix,
             .x = forward_.x,
             .grad_x = given_.const_data_ptr<float>(),
             .grad_psi = data<float>(results_["grad_psi"]),
             .z = data<float>(z_),
             .y = data<float>(y_),
             .alpha_terms = data<float>(terms_)};
    edges_ = EdgesOnDevice(inputs, setting, product_, results_, data<std::int32_t>(handover_) + 2);
    parameters_ = {.term_rows = terms_.size(0),
                   .alpha_terms = data<float>(terms_),
                   .grad_alpha = data<float>(results_["grad_alpha"]),
                   .edges = edges_.arguments()};
  }

  void run() override {
    run_forward();
    if (backward_) run_backward();
  }
  void run_forward() override {
    if (!wide_) return launch_forward(operand_, forward_, stream());
    launch_wide_forward({.rows = forward_.rows,
                         .dim = forward_.dim,
                         .psi = forward_.psi,
                         .alpha = forward_.alpha,
                         .matrix = wide_->matrix(),
                         .turned = wide_->turned(),
                         .nonfinite_rows = forward_.nonfinite_rows,
                         .handover = forward_.handover},
                        stream());
    if (forward_.rows > 0) wide_->multiply_turned(forward_results_["x"]);
  }
  void run_backward() override {
    if (wide_)
      back_through_products();
    else
      launch_backward(back_, stream());
    multiply(product_, z_.t(), y_);
    launch_parameters(parameters_, stream());
  }

  NamedTensors forward_outputs() override { return forward_results_; }
  std::vector<at::Tensor> kept() override { return {forward_results_["x"]}; }
  NamedTensors outputs() override { return backward_ ? results_ : forward_results_; }

 private:
  void back_through_products() {
    if (back_.rows > 0) wide_->multiply_given(given_);
    launch_wide_backward({.rows = back_.rows,
                          .dim = back_.dim,
                          .psi = back_.psi,
                          .alpha = back_.alpha,
                          .products = wide_->products(),
                          .x = back_.x,
                          .grad_x = back_.grad_x,
                          .grad_psi = back_.grad_psi,
                          .z = back_.z,
                          .y = back_.y,
                          .alpha_terms = back_.alpha_terms},
                         stream());
  }

  const bool backward_;
  const Operand operand_;
  at::Tensor psi_, alpha_, matrix_, handover_, given_, z_, y_, product_, terms_;
  EdgesOnDevice edges_;
  NamedTensors forward_results_, results_;
  ForwardArguments forward_;
  BackwardArguments back_;
  ParameterArguments parameters_;
  std::optional<WideProducts> wide_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaCayley>(inputs, setting);
}

}  // namespace twinbench::sem::cayley
