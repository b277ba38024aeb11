// Optimized trainer2.field_dynamics on the CPU: a row of the tensor through the whole window in the first-level cache.
#include <vector>

#include "optimized/common/rows.h"
#include "optimized/trainer2/field_dynamics/window.h"
#include "src/common/cpu_clones.h"

namespace twinbench::trainer2::field_dynamics {
namespace {

// Of a cell: where its four neighbours' numbers begin.
struct Neighbours {
  std::int32_t right, left, up, down;
};

// One row in a thread's scratch: four planes [cells, 2, dimension], real parts before imaginary ones, then sums and the
// outer force as one cell has it.
struct Row {
  float *field, *momentum, *force, *rest, *sums, *outside;
  std::int64_t cells, dimension;

  Row(const Arguments& a, float* scratch) : cells(std::int64_t{a.width} * a.height), dimension(a.dimension) {
    const std::int64_t plane = cells * 2 * dimension;
    field = scratch;
    momentum = field + plane;
    force = momentum + plane;
    rest = force + plane;
    sums = rest + plane;
    outside = sums + 2 * dimension;
  }
  static std::int64_t floats(const Arguments& a) {
    return 4 * std::int64_t{a.width} * a.height * 2 * a.dimension + 4 * a.dimension;
  }
};

// The force of every number, and the momentum's half kick by it.
TWINBENCH_CPU_CLONES void forces(const Row& row, const Neighbours* table, const Constants& by, float kick) {
  const std::int64_t width = 2 * row.dimension;
  const float* const outside = row.outside;
  for (std::int64_t cell = 0; cell < row.cells; ++cell) {
    const Neighbours n = table[cell];
    const float *const field = row.field, *const here = field + cell * width, *const rest = row.rest + cell * width;
    const float *const right = field + n.right, *const left = field + n.left, *const up = field + n.up,
                       *const down = field + n.down;
    float *const force = row.force + cell * width, *const momentum = row.momentum + cell * width;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) {
      const float slope = laplacian(right[j], left[j], up[j], down[j], here[j]);
      const float now = force_on(by, slope, here[j], rest[j], outside[j]);
      force[j] = now;
      momentum[j] += kick * now;
    }
  }
}

TWINBENCH_CPU_CLONES void kick_and_drift(const Row& row, const Constants& by) {
  float *const field = row.field, *const momentum = row.momentum;
  const float* const force = row.force;
  const std::int64_t count = row.cells * 2 * row.dimension;
#pragma GCC ivdep
  for (std::int64_t at = 0; at < count; ++at) {
    momentum[at] += by.half_kick * force[at];
    field[at] += by.drift * momentum[at];
  }
}

// The Laplacians first, into the force's plane: every cell needs its neighbours' old values.
TWINBENCH_CPU_CLONES void dissipate(const Row& row, const Neighbours* table, const Constants& by, float factor) {
  const std::int64_t d = row.dimension, width = 2 * d;
  for (std::int64_t cell = 0; cell < row.cells; ++cell) {
    const Neighbours n = table[cell];
    const float *const field = row.field, *const here = field + cell * width, *const right = field + n.right,
                       *const left = field + n.left, *const up = field + n.up, *const down = field + n.down;
    float* const slope = row.force + cell * width;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < width; ++j) slope[j] = laplacian(right[j], left[j], up[j], down[j], here[j]);
  }
  const float outside = row.outside[0];
  for (std::int64_t cell = 0; cell < row.cells; ++cell) {
    float *const real = row.field + cell * width, *const imaginary = real + d;
    const float *const of_real = row.force + cell * width, *const of_imaginary = of_real + d;
#pragma GCC ivdep
    for (std::int64_t j = 0; j < d; ++j) {
      real[j] += by.turn * (factor * of_imaginary[j]);
      imaginary[j] -= by.turn * (factor * of_real[j] + outside);
    }
  }
}

// Moduli and real parts, summed down the cells, then across: in pieces, for one sum of thousands of cells forgets the
// small ones.
constexpr std::int64_t kCellsOfPiece = 256;
TWINBENCH_CPU_CLONES void sum_up(const Row& row, float* modulus_sum, float* mean) {
  const std::int64_t d = row.dimension;
  float *const moduli = row.sums, *const reals = moduli + d;
  double modulus_all = 0, real_all = 0;
  for (std::int64_t first = 0; first < row.cells; first += kCellsOfPiece) {
    std::fill_n(moduli, 2 * d, 0.0f);
    const std::int64_t last = std::min(row.cells, first + kCellsOfPiece);
    for (std::int64_t cell = first; cell < last; ++cell) {
      const float *const real = row.field + cell * 2 * d, *const imaginary = real + d;
#pragma GCC ivdep
      for (std::int64_t j = 0; j < d; ++j) {
        moduli[j] += modulus(real[j], imaginary[j]);
        reals[j] += real[j];
      }
    }
    for (std::int64_t j = 0; j < d; ++j) modulus_all += double{moduli[j]}, real_all += double{reals[j]};
  }
  *modulus_sum = static_cast<float>(modulus_all);
  *mean = static_cast<float>(real_all / static_cast<double>(row.cells * d));
}

// Between a tensor [cells, rows, dimension, 2] and one row's plane.
template <class Number, class Move>
void each_number(const Row& row, std::int64_t index, std::int64_t rows, Number* tensor, float* plane, Move move) {
  const std::int64_t d = row.dimension;
  for (std::int64_t cell = 0; cell < row.cells; ++cell)
    for (std::int64_t j = 0; j < d; ++j)
      for (int part = 0; part < 2; ++part)
        move(tensor[2 * ((cell * rows + index) * d + j) + part], plane[(cell * 2 + part) * d + j]);
}

class CpuWindow final : public WindowState {
 public:
  CpuWindow(const NamedTensors& inputs, const Setting& setting)
      : WindowState(inputs, setting),
        pieces_(pieces_of(arguments())),
        scratch_(at::empty({pieces_.number(), Row::floats(arguments())}, at::kFloat)) {
    const Arguments& a = arguments();
    const auto cell = [&](int x, int y) {
      return static_cast<std::int32_t>(((x + a.width) % a.width * a.height + (y + a.height) % a.height) * 2 *
                                       a.dimension);
    };
    for (int x = 0; x < a.width; ++x)
      for (int y = 0; y < a.height; ++y)
        table_.push_back({cell(x + 1, y), cell(x - 1, y), cell(x, y + 1), cell(x, y - 1)});
  }

  void run() override {
    const Arguments& a = arguments();
    pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      const Row row(a, data<float>(scratch_) + piece * scratch_.size(1));
      for (std::int64_t index = begin; index < end; ++index) window_of(a, index, row);
    });
  }

 private:
  // Of the tensor's rows; a piece is at least about 100 us of work, counted in numbers times steps.
  static Pieces pieces_of(const Arguments& a) {
    constexpr std::int64_t kLeast = 1 << 16;
    return Pieces::of(a.dimension, grain(a.steps * a.width * a.height * a.dimension, kLeast), at::get_num_threads(), 1);
  }

  void window_of(const Arguments& a, std::int64_t index, const Row& row) const {
    const auto in = [](const float& from, float& to) { to = from; };
    const auto out = [](float& to, const float& from) { to = from; };
    each_number(row, index, a.dimension, a.field, row.field, in);
    each_number(row, index, a.dimension, a.momentum, row.momentum, in);
    each_number(row, index, a.dimension, a.equilibrium, row.rest, in);
    std::fill_n(row.outside, row.dimension, a.force[index * a.force_stride]);
    std::fill_n(row.outside + row.dimension, row.dimension, 0.0f);
    std::int64_t history = a.history[index];
    if (!a.dissipative) forces(row, table_.data(), a.by, 0);
    for (std::int64_t step = 0; step < a.steps; ++step) {
      if (a.dissipative) {
        dissipate(row, table_.data(), a.by, a.factors[history]);
        history = std::min<std::int64_t>(history + 1, kHistories - 1);
      } else {
        kick_and_drift(row, a.by);
        forces(row, table_.data(), a.by, a.by.half_kick);
      }
      sum_up(row, a.row_modulus + index * a.steps + step, a.row_mean + index * a.steps + step);
    }
    each_number(row, index, a.dimension, a.field, row.field, out);
    each_number(row, index, a.dimension, a.momentum, row.momentum, out);
    a.history[index] = history;
  }

  const Pieces pieces_;
  at::Tensor scratch_;  // a row of every piece
  std::vector<Neighbours> table_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuWindow>(inputs, setting);
}

}  // namespace twinbench::trainer2::field_dynamics
