// Optimized sem.cayley on the CPU: blocks of rows are turned into a scratch tile and multiplied with the unitary
// matrix while they lie in the cache; backward the same way, with the matrix' conjugate and one product for all edges.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "kernels/sem/cayley/math.h"
#include "optimized/common/rows.h"
#include "optimized/common/two_halves.h"
#include "optimized/sem/cayley/unitary.h"

namespace twinbench::sem::cayley {
namespace {

// Rows of `dim` numbers, real and imaginary parts apart.
template <class Real>
struct Rows {
  Real *re, *im;
  std::int64_t stride;
  Rows at(std::int64_t row) const { return {re + row * stride, im + row * stride, stride}; }
};

constexpr int kLanes = 16;  // interleaved partial sums

template <class Real>
inline __attribute__((always_inline)) Real mean_square(const Real* __restrict re, const Real* __restrict im,
                                                       std::int64_t dim) {
  Real sums[kLanes] = {}, sum = 0;
  std::int64_t i = 0;
  for (; i + kLanes <= dim; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += re[i + lane] * re[i + lane] + im[i + lane] * im[i + lane];
  for (; i < dim; ++i) sum += re[i] * re[i] + im[i] * im[i];
  for (const Real one : sums) sum += one;
  return sum / static_cast<Real>(dim);
}

// phase[i] -> sine and cosine; every phase that is no NaN may be as large as it likes.
TWINBENCH_CPU_CLONES void turn_by(const float* __restrict phase, std::int64_t dim, float* __restrict sine,
                                  float* __restrict cosine) {
  float most = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const float size = kernels::absolute(phase[i]);
    most = size > most ? size : most;
  }
  if (most <= kernels::kModeratePhase) {
    for (std::int64_t i = 0; i < dim; ++i) {
      const auto by = kernels::moderate_sine_cosine(phase[i]);
      sine[i] = by.sine;
      cosine[i] = by.cosine;
    }
  } else {
    for (std::int64_t i = 0; i < dim; ++i) {
      const auto by = kernels::sine_cosine(phase[i]);
      sine[i] = by.sine;
      cosine[i] = by.cosine;
    }
  }
}
void turn_by(const double* phase, std::int64_t dim, double* sine, double* cosine) {
  for (std::int64_t i = 0; i < dim; ++i) {
    sine[i] = std::sin(phase[i]);
    cosine[i] = std::cos(phase[i]);
  }
}

// Leaves intensities over the row's mean; returns what they were divided by.
template <class Real>
TWINBENCH_CPU_CLONES static Real intensities(const Real* __restrict re, const Real* __restrict im, std::int64_t dim,
                                             const Real* __restrict alpha, Real* __restrict intensity,
                                             Real* __restrict phase) {
  const Real floor = mean_square(re, im, dim) + kIntensityFloor<Real>;
  for (std::int64_t i = 0; i < dim; ++i) {
    intensity[i] = intensity_of<Real>({re[i], im[i]}, floor);
    phase[i] = alpha[i] * intensity[i];
  }
  return floor;
}

template <class Real>
TWINBENCH_CPU_CLONES static void turn(const Real* __restrict re, const Real* __restrict im, const Real* __restrict sine,
                                      const Real* __restrict cosine, std::int64_t dim, Real* __restrict to_re,
                                      Real* __restrict to_im) {
  for (std::int64_t i = 0; i < dim; ++i) {
    const auto result = turned<Real>({re[i], im[i]}, {sine[i], cosine[i]});
    to_re[i] = result.re;
    to_im[i] = result.im;
  }
}

// z = (g + given) / 2 and y = x + r, y as the product takes it: times -i.
template <class Real>
TWINBENCH_CPU_CLONES static void factors(std::int64_t dim, const Real* __restrict g_re, const Real* __restrict g_im,
                                         const Real* __restrict given_re, const Real* __restrict given_im,
                                         const Real* __restrict x_re, const Real* __restrict x_im,
                                         Real* __restrict z_re, Real* __restrict z_im, Real* __restrict y_re,
                                         Real* __restrict y_im) {
  for (std::int64_t i = 0; i < dim; ++i) {
    z_re[i] = (g_re[i] + given_re[i]) / 2;
    z_im[i] = (g_im[i] + given_im[i]) / 2;
    const Real re = x_re[i] + y_re[i], im = x_im[i] + y_im[i];  // y holds the turned row
    y_re[i] = im;
    y_im[i] = -re;
  }
}

// weighted: dL/dphase on entry. Leaves the row's terms of alpha's gradient in `terms`.
template <class Real>
TWINBENCH_CPU_CLONES static void turn_back(std::int64_t dim, const Real* __restrict re, const Real* __restrict im,
                                           const Real* __restrict g_re, const Real* __restrict g_im,
                                           const Real* __restrict sine, const Real* __restrict cosine,
                                           const Real* __restrict intensity, const Real* __restrict alpha, Real floor,
                                           Real* __restrict terms, Real* __restrict to_re, Real* __restrict to_im) {
  Real sums[kLanes] = {}, mean = 0;
  std::int64_t i = 0;
  for (std::int64_t k = 0; k < dim; ++k)
    terms[k] = phase_gradient<Real>({g_re[k], g_im[k]}, turned<Real>({re[k], im[k]}, {sine[k], cosine[k]}));
  for (; i + kLanes <= dim; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += alpha[i + lane] * terms[i + lane] * intensity[i + lane];
  for (; i < dim; ++i) mean += alpha[i] * terms[i] * intensity[i];
  for (const Real one : sums) mean += one;
  mean /= static_cast<Real>(dim);
  for (std::int64_t k = 0; k < dim; ++k) {
    const auto result =
        turned_back<Real>({g_re[k], g_im[k]}, {sine[k], cosine[k]}, {re[k], im[k]}, alpha[k] * terms[k], mean, floor);
    to_re[k] = result.re;
    to_im[k] = result.im;
    terms[k] *= intensity[k];
  }
}

template <class Real>
TWINBENCH_CPU_CLONES static bool is_finite_row(const Real* __restrict re, const Real* __restrict im, std::int64_t dim) {
  Real sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) sum += (re[i] + im[i]) * Real(0);
  return sum == Real(0);
}

template <class Real>
class CpuCayley final : public TwoHalves {
 public:
  CpuCayley(const NamedTensors& inputs, const Setting& setting)
      : setting_(setting),
        rows_(setting.size("rows")),
        dim_(setting.size("dim")),
        block_(std::min(rows_, kBlock)),
        psi_(inputs["psi"].contiguous()),
        alpha_(inputs["alpha"].contiguous()),
        forward_results_(zero_results(forward_of(setting))) {
    const auto options = psi_.options();
    const Unitary unitary = unitary_of(inputs, setting);
    matrix_ = stacked(unitary.re, unitary.im, psi_.scalar_type());
    tile_ = at::empty({block_, 2 * dim_}, options);
    pieces_ = Pieces::of(block_, grain(dim_, kElements), at::get_num_threads(), 1);
    scratch_ = at::empty({pieces_.number(), 4, dim_}, options);
    finite_.resize(static_cast<std::size_t>(block_));
    if (!setting.backward()) return;
    conjugate_ = stacked(unitary.re, -unitary.im, psi_.scalar_type());
    given_ = inputs["grad_x"].contiguous();
    gradient_ = at::empty({2, block_, dim_}, options);
    z_ = at::empty({2 * block_, dim_}, options);
    y_ = at::empty({2 * block_, dim_}, options);
    terms_ = at::empty({block_, dim_}, options);
    product_ = at::empty({dim_, dim_}, options);
    nodes_ = inputs["nodes"].contiguous();
    factors_ = edge_factors(inputs, setting);
    results_ = zero_results(setting);
    alpha_sums_.resize(static_cast<std::size_t>(dim_));
  }

  void run() override {
    run_forward();
    if (setting_.backward()) run_backward();
  }

  void run_forward() override {
    const at::NoGradGuard no_tape;
    const at::Tensor& x = forward_results_["x"];
    std::int32_t nonfinite = 0;
    for (std::int64_t begin = 0; begin < rows_; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, rows_ - begin);
      const Rows<Real> tile = tile_rows();
      over_rows(count, [&](std::int64_t row, Real* scratch) {
        const Rows<Real> psi = planes(psi_, begin + row), to = tile.at(row);
        intensities(psi.re, psi.im, dim_, data<Real>(alpha_), scratch, scratch + dim_);
        turn_by(scratch + dim_, dim_, scratch + 2 * dim_, scratch + 3 * dim_);
        turn(psi.re, psi.im, scratch + 2 * dim_, scratch + 3 * dim_, dim_, to.re, to.im);
      });
      multiply_block(matrix_, count, x.narrow(1, begin, count));
      over_rows(count, [&](std::int64_t row, Real*) {
        const Rows<Real> of_x = planes(x, begin + row);
        finite_[static_cast<std::size_t>(row)] = is_finite_row(of_x.re, of_x.im, dim_) ? 1 : 0;
      });
      for (std::int64_t row = 0; row < count; ++row) nonfinite += 1 - finite_[static_cast<std::size_t>(row)];
    }
    *data<std::int32_t>(forward_results_["nonfinite_rows"]) = nonfinite;
  }

  void run_backward() override {
    const at::NoGradGuard no_tape;
    std::fill_n(data<Real>(product_), dim_ * dim_, Real(0));
    std::fill(alpha_sums_.begin(), alpha_sums_.end(), 0.0);
    for (std::int64_t begin = 0; begin < rows_; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, rows_ - begin);
      block_backward(begin, count);
      at::Tensor z = z_.narrow(0, 0, 2 * count), y = y_.narrow(0, 0, 2 * count);
      at::addmm_out(product_, product_, z.t(), y);
      add_terms(count);
    }
    for (std::int64_t i = 0; i < dim_; ++i)
      data<Real>(results_["grad_alpha"])[i] = static_cast<Real>(alpha_sums_[static_cast<std::size_t>(i)]);
    edges_backward<Real>(product_, nodes_, factors_, results_);
  }

  NamedTensors forward_outputs() override { return forward_results_; }
  std::vector<at::Tensor> kept() override { return {forward_results_["x"]}; }
  NamedTensors outputs() override { return setting_.backward() ? results_ : forward_results_; }

 private:
  static constexpr std::int64_t kBlock = 256;      // rows whose tiles lie in the second-level cache
  static constexpr std::int64_t kElements = 8192;  // of a row loop that pay for waking a thread

  Rows<Real> planes(const at::Tensor& field, std::int64_t row) const {
    Real* const re = data<Real>(field) + row * dim_;
    return {re, re + field.size(1) * dim_, dim_};
  }
  Rows<Real> tile_rows() const { return {data<Real>(tile_), data<Real>(tile_) + dim_, 2 * dim_}; }

  // work(row, scratch) for every row of a block; scratch: four rows of the piece's own.
  template <class Work>
  void over_rows(std::int64_t count, Work work) {
    pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      Real* const scratch = data<Real>(scratch_) + piece * 4 * dim_;
      for (std::int64_t row = begin; row < std::min(end, count); ++row) work(row, scratch);
    });
  }

  // to [2, count, dim]: the tile's first rows times the matrix.
  void multiply_block(const at::Tensor& matrix, std::int64_t count, const at::Tensor& to) {
    const at::Tensor rows = tile_.narrow(0, 0, count);
    for (const std::int64_t plane : {0, 1}) {
      at::Tensor out = to.select(0, plane);
      at::mm_out(out, rows, matrix.narrow(1, plane * dim_, dim_));
    }
  }

  void block_backward(std::int64_t begin, std::int64_t count) {
    const Rows<Real> tile = tile_rows();
    over_rows(count, [&](std::int64_t row, Real*) {
      const Rows<Real> given = planes(given_, begin + row), to = tile.at(row);
      std::copy_n(given.re, dim_, to.re);
      std::copy_n(given.im, dim_, to.im);
    });
    multiply_block(conjugate_, count, gradient_.narrow(1, 0, count));
    over_rows(count, [&](std::int64_t row, Real* scratch) {
      const Rows<Real> psi = planes(psi_, begin + row), x = planes(forward_results_["x"], begin + row),
                       given = planes(given_, begin + row), gradient = planes(gradient_, row),
                       to = planes(results_["grad_psi"], begin + row);
      Real* const z = data<Real>(z_) + row * dim_;
      Real* const y = data<Real>(y_) + row * dim_;
      Real *const intensity = scratch, *const sine = scratch + 2 * dim_, *const cosine = scratch + 3 * dim_;
      const Real floor = intensities(psi.re, psi.im, dim_, data<Real>(alpha_), intensity, scratch + dim_);
      turn_by(scratch + dim_, dim_, sine, cosine);
      turn(psi.re, psi.im, sine, cosine, dim_, y, y + count * dim_);
      factors(dim_, gradient.re, gradient.im, given.re, given.im, x.re, x.im, z, z + count * dim_, y, y + count * dim_);
      turn_back(dim_, psi.re, psi.im, gradient.re, gradient.im, sine, cosine, intensity, data<Real>(alpha_), floor,
                data<Real>(terms_) + row * dim_, to.re, to.im);
    });
  }

  void add_terms(std::int64_t count) {
    const Real* const terms = data<Real>(terms_);
    for (std::int64_t row = 0; row < count; ++row)
      for (std::int64_t i = 0; i < dim_; ++i) alpha_sums_[static_cast<std::size_t>(i)] += double{terms[row * dim_ + i]};
  }

  const Setting setting_;
  const std::int64_t rows_, dim_, block_;
  at::Tensor psi_, alpha_, given_, nodes_;
  NamedTensors forward_results_, results_;
  at::Tensor matrix_, conjugate_;                  // [2 dim, 2 dim]
  at::Tensor tile_, scratch_;                      // [block, 2 dim], [pieces, 4, dim]
  at::Tensor gradient_, z_, y_, terms_, product_;  // [2, block, dim], 2 x [2 block, dim], [block, dim], [dim, dim]
  EdgeFactors factors_;
  Pieces pieces_;
  std::vector<char> finite_;
  std::vector<double> alpha_sums_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuCayley<double>>(inputs, setting);
  return std::make_unique<CpuCayley<float>>(inputs, setting);
}

}  // namespace twinbench::sem::cayley
