// Optimized sem.complex_adamw on the CPU: one pass for the norm, one for everything else, no operator, no allocation.
#include <ATen/Parallel.h>

#include "kernels/sem/common/normals.h"
#include "optimized/common/adamw_rows.h"
#include "optimized/sem/complex_adamw/plan.h"

namespace twinbench::sem::complex_adamw {
namespace {

constexpr std::int64_t kLeastPieces = 8;  // a thread's: 32,768 elements

struct Part {
  float *parameter, *gradient, *first;
};
Part part_of(const Arguments& a, std::int64_t at) { return {a.parameters + at, a.gradients + at, a.first_moment + at}; }

TWINBENCH_CPU_CLONES void update_pair(const Part& real, const Part& imaginary, float* __restrict second,
                                      std::int64_t count, const Step& by, bool clears) {
  const Step step = by;
  float* __restrict const p = real.parameter, * __restrict const g = real.gradient, * __restrict const m = real.first;
  float *__restrict const q = imaginary.parameter, *__restrict const h = imaginary.gradient,
                          *__restrict const n = imaginary.first;
  for (std::int64_t i = 0; i < count; ++i) {
    const float a = g[i] * step.coefficient, b = h[i] * step.coefficient;
    const float squared = kernels::moved_second(second[i], a * a + b * b), below = kernels::denominator(squared, step);
    const float first = kernels::moved_first(m[i], a), other = kernels::moved_first(n[i], b);
    p[i] = kernels::moved_parameter(p[i], first, below, step);
    q[i] = kernels::moved_parameter(q[i], other, below, step);
    m[i] = first;
    n[i] = other;
    second[i] = squared;
    g[i] = clears ? 0.0f : a;
    h[i] = clears ? 0.0f : b;
  }
}

// After the update: its denominators follow from the second moments.
void add_noise(const Arguments& a, const Step& step, const Piece& piece, int part) {
  float* const parameters = a.parameters + piece.first + part * piece.partner;
  const float* const second = a.second_moment + piece.second;
  FourNormals normals{};
  for (std::int64_t i = 0; i < piece.count; ++i) {
    const auto element = static_cast<std::uint64_t>(piece.element + i);
    if (i == 0 || element % 4 == 0)
      normals = four_normals(a.seed, piece.stream + static_cast<std::uint32_t>(part), step.number, element / 4);
    parameters[i] += noise_of(normals.of[element % 4], kernels::denominator(second[i], step), step);
  }
}

class CpuSteps final : public Plan {
 public:
  using Plan::Plan;

  void take(const Arguments& a) override {
    each_piece(a, [&a](std::int64_t i) {
      const Piece& piece = a.pieces[i];
      a.partial[i] = sum_of_squares(a.gradients + piece.first, piece.count);
      if (piece.partner != 0) a.partial[i] += sum_of_squares(a.gradients + piece.first + piece.partner, piece.count);
    });
    double sum = 0;
    for (std::int64_t i = 0; i < a.count; ++i) sum += a.partial[i];
    Counts counts{a.counts[0], a.counts[1], a.counts[2]};
    *a.norm = std::sqrt(sum);
    const Step step = decided(a.rule, *a.norm, *a.loss, *a.learning_rate, counts, *a.coefficient);
    a.counts[0] = counts.applied;
    a.counts[1] = counts.suppressed;
    a.counts[2] = counts.in_a_row;
    *a.status = status_of(counts.in_a_row);
    if (step.applied != 0)
      each_piece(a, [&](std::int64_t i) { update(a, step, a.pieces[i]); });
    else if (a.clears)
      each_piece(a, [&](std::int64_t i) { clear(a, a.pieces[i]); });
  }

 private:
  template <class Body>
  static void each_piece(const Arguments& a, Body body) {
    at::parallel_for(0, a.count, kLeastPieces, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) body(i);
    });
  }

  static void update(const Arguments& a, const Step& step, const Piece& piece) {
    const Part part = part_of(a, piece.first);
    float* const second = a.second_moment + piece.second;
    if (piece.partner == 0)
      update_row(part.parameter, part.gradient, part.first, second, piece.count, step, a.clears);
    else
      update_pair(part, part_of(a, piece.first + piece.partner), second, piece.count, step, a.clears);
    if (!(a.rule.temperature > 0)) return;
    add_noise(a, step, piece, 0);
    if (piece.partner != 0) add_noise(a, step, piece, 1);
  }

  static void clear(const Arguments& a, const Piece& piece) {
    std::fill_n(a.gradients + piece.first, piece.count, 0.0f);
    if (piece.partner != 0) std::fill_n(a.gradients + piece.first + piece.partner, piece.count, 0.0f);
  }
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuSteps>(inputs, setting);
}

}  // namespace twinbench::sem::complex_adamw
