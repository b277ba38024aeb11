// Library variant of sem.cayley: the unitary matrix from LibTorch's solver, one product with it, the rotation apart.
#include <ATen/ATen.h>

#include "baselines/common/tape.h"

namespace twinbench::sem::cayley {
namespace {

class Library final : public TapeBaseline {
 public:
  Library(const NamedTensors& inputs, const Setting& setting) : TapeBaseline(inputs, setting, Way::kLibrary) {
    const at::Tensor starts = inputs["starts"].to(at::kLong);
    scale_of_edge_ = at::repeat_interleave(starts.diff());
    make_leaves();
    iterations_ = at::zeros({2}, inputs["psi"].options().dtype(at::kInt));
    if (!backward_) unitary_ = unitary();
  }

 private:
  void compute() override {
    // Where the parameters are trained, the matrix is part of the tape.
    const at::Tensor matrix = backward_ ? unitary() : unitary_;
    const at::Tensor& psi = inputs_["psi"];
    const at::Tensor squares = at::square(psi).sum(0);
    const at::Tensor phase = squares.div(squares.mean(1, true).add(1e-8)).mul(inputs_["alpha"]);
    const at::Tensor cosine = at::cos(phase), sine = at::sin(phase);
    const at::Tensor rotated = at::cat({psi[0] * cosine - psi[1] * sine, psi[0] * sine + psi[1] * cosine}, 1);
    const at::Tensor x = at::matmul(rotated, matrix).view({psi.size(1), 2, psi.size(2)}).transpose(0, 1).contiguous();
    if (!backward_) {
      const at::Tensor finite = at::isfinite(x.sum(0)).all(1);
      results_.set("nonfinite_rows", at::logical_not(finite).sum({0}, true, at::kInt));
    }
    result("x", x);
    results_.set("iterations", iterations_);
  }

  // [2 dim, 2 dim]: rows of real, then imaginary parts times this are those of A^-1 A^H r. In fp64, rounded once.
  at::Tensor unitary() const {
    const at::Tensor theta = inputs_["theta"].to(at::kDouble), shares = at::softmax(inputs_["mix"].to(at::kDouble), 0);
    const at::Tensor weights = at::softplus(theta) * at::index_select(shares, 0, scale_of_edge_);
    const at::Tensor first = inputs_["nodes"].select(1, 0), second = inputs_["nodes"].select(1, 1);
    const std::int64_t dim = setting_.size("dim");
    const at::Tensor diagonal =
        at::zeros({dim}, weights.options()).index_add(0, first, weights).index_add(0, second, weights);
    const at::Tensor off = at::zeros({dim, dim}, weights.options())
                               .index_put({{first, second}}, weights, true)
                               .index_put({{second, first}}, weights, true);
    const at::Tensor shift = (at::diag(diagonal) - off) * (setting_.option("dt") / 2);
    const at::Tensor one = at::eye(dim, shift.options());
    const at::Tensor square = at::matmul(shift, shift);
    const at::Tensor inverse = at::linalg_inv(one + square);
    const at::Tensor re = 2 * inverse - one, im = -2 * at::matmul(shift, inverse);
    return at::cat({at::cat({re, im}, 1), at::cat({-im, re}, 1)}, 0).to(inputs_["psi"].scalar_type());
  }

  at::Tensor scale_of_edge_, unitary_, iterations_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Library>(inputs, setting);
}

}  // namespace twinbench::sem::cayley
