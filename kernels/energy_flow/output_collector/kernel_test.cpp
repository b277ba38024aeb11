// energy_flow.output_collector's kernels on the host executor, in every thread order, against plain loops in fp64.
#include "kernels/energy_flow/output_collector/kernel.h"

#include "harness/simt/kernel_testing.h"

namespace twinbench::energy_flow::output_collector {
namespace {

using kernels::simt::Buffer;
using kernels::simt::Floats;
using kernels::simt::GuardedBuffer;
using kernels::simt::Order;

TEST(OutputCollectorKernel, WritesTheMapIntoRows) {
  constexpr int kMapRows = 3, kCells = 700, kEntries = 600;
  const Floats energy = kernels::simt::spread(kMapRows * kEntries, 1), weights = kernels::simt::spread(kCells, 2);
  std::vector<std::int64_t> cells;
  for (int i = 0; i < kMapRows * kEntries; ++i)
    cells.push_back(i % 7 == 0 ? -1 : i % 11 == 5 ? kCells + i : i % kEntries * 37 % kCells);
  Floats expected(static_cast<std::size_t>(kMapRows * kCells));
  for (int i = 0; i < kMapRows * kEntries; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (cells[at] < 0 || cells[at] >= kCells) continue;
    const auto cell = static_cast<std::size_t>(cells[at]);
    expected[static_cast<std::size_t>(i / kEntries * kCells) + cell] = energy[at] * weights[cell];
  }
  for (const Order order : kernels::simt::kAllOrders) {
    const Buffer from(energy), weight(weights), surface(expected.size());
    const GuardedBuffer<std::int64_t> keys(cells);
    kernels::simt::run_clean(MapRows{}, 2, kMapThreads, order,
                             MapArguments{.rows = kMapRows,
                                          .cells = kCells,
                                          .entries = kEntries,
                                          .energy = from.data(),
                                          .cell = keys.data(),
                                          .cell_weight = weight.data(),
                                          .surface = surface.data()});
    kernels::simt::expect_close(surface, expected, 0, "surface");
  }
}

struct Problem {
  int rows, inner, columns;
  bool normalised, bf16;
};

// The moments of the pieces of every row, as the layer before leaves them.
Floats moments_of(const Floats& x, int rows, int inner) {
  Floats means, deviations;
  for (int row = 0; row < rows; ++row)
    for (int from = 0; from < inner; from += kLayerColumns) {
      const int until = std::min(from + kLayerColumns, inner);
      double mean = 0, squares = 0;
      for (int k = from; k < until; ++k) mean += x[static_cast<std::size_t>(row * inner + k)] / (until - from);
      for (int k = from; k < until; ++k) squares += std::pow(x[static_cast<std::size_t>(row * inner + k)] - mean, 2);
      means.push_back(static_cast<float>(mean));
      deviations.push_back(static_cast<float>(squares));
    }
  means.insert(means.end(), deviations.begin(), deviations.end());
  return means;
}

Floats run(const Problem& p, const Floats& x, Order order, bool last, Floats* out_moments = nullptr) {
  const Floats weights = kernels::simt::spread(p.columns * p.inner, 5, 0.2f);
  std::vector<std::uint16_t> rounded;
  for (const float weight : weights) rounded.push_back(kernels::bf16_bits(weight));
  const Buffer from(x), moments(moments_of(x, p.rows, p.inner)), gain(kernels::simt::spread(p.inner, 6)),
      shift(kernels::simt::spread(p.inner, 7)), bias(kernels::simt::spread(p.columns, 8)), weight(weights),
      out(static_cast<std::size_t>(p.rows * p.columns)),
      result_moments(static_cast<std::size_t>(p.rows * pieces_of(p.columns) * 2));
  const GuardedBuffer<std::uint16_t> weight_bf16(rounded);
  const LayerArguments a{.rows = p.rows,
                         .inner = p.inner,
                         .columns = p.columns,
                         .x = from.data(),
                         .gain = p.normalised ? gain.data() : nullptr,
                         .shift = p.normalised ? shift.data() : nullptr,
                         .moments = p.normalised ? moments.data() : nullptr,
                         .weight = p.bf16 ? nullptr : weight.data(),
                         .weight_bf16 = p.bf16 ? weight_bf16.data() : nullptr,
                         .bias = bias.data(),
                         .out = out.data(),
                         .out_moments = last ? nullptr : result_moments.data()};
  const kernels::simt::Size3 grid{static_cast<unsigned>(pieces_of(p.columns)),
                                  static_cast<unsigned>((p.rows + kRows - 1) / kRows), 1};
  const auto start = [&](auto kernel) { kernels::simt::run_clean(kernel, grid, kThreads, order, a, kStagedBytes); };
  if (p.inner % 4 == 0)
    p.bf16 ? start(LayerBfloat{}) : start(Layer{});
  else
    p.bf16 ? start(LayerBfloatAnyWidth{}) : start(LayerAnyWidth{});
  if (out_moments != nullptr)
    *out_moments = Floats(result_moments.data(), result_moments.data() + result_moments.size());
  return Floats(out.data(), out.data() + out.size());
}

std::vector<double> plain_loop(const Problem& p, const Floats& x, bool last) {
  const Floats weights = kernels::simt::spread(p.columns * p.inner, 5, 0.2f), gain = kernels::simt::spread(p.inner, 6),
               shift = kernels::simt::spread(p.inner, 7), bias = kernels::simt::spread(p.columns, 8);
  std::vector<double> out;
  for (int row = 0; row < p.rows; ++row) {
    const auto at = [&](int k) { return double{x[static_cast<std::size_t>(row * p.inner + k)]}; };
    double mean = 0, squares = 0;
    for (int k = 0; k < p.inner; ++k) mean += at(k) / p.inner;
    for (int k = 0; k < p.inner; ++k) squares += (at(k) - mean) * (at(k) - mean) / p.inner;
    for (int column = 0; column < p.columns; ++column) {
      double sum = bias[static_cast<std::size_t>(column)];
      for (int k = 0; k < p.inner; ++k) {
        const auto place = static_cast<std::size_t>(k);
        double value = at(k);
        if (p.normalised) value = (value - mean) / std::sqrt(squares + 1e-5) * gain[place] + shift[place];
        const float weight = weights[static_cast<std::size_t>(column * p.inner + k)];
        if (p.bf16 && p.normalised) value = kernels::round_to_bf16(static_cast<float>(value));
        sum += value * double{p.bf16 ? kernels::round_to_bf16(weight) : weight};
      }
      out.push_back(last ? sum : kernels::gelu(sum));
    }
  }
  return out;
}

TEST(OutputCollectorKernel, LayersMatchAPlainLoop) {
  for (const Problem& p : {Problem{3, 20, 7, false, false},
                           {18, 260, 33, true, false},
                           {5, 37, 16, true, false},
                           {2, 300, 18, true, true},
                           {1, 39, 5, false, true}})
    for (const bool last : {false, true}) {
      const Floats x = kernels::simt::spread(p.rows * p.inner, 4);
      const auto expected = plain_loop(p, x, last);
      for (const Order order : kernels::simt::kAllOrders) {
        Floats moments;
        const Floats out = run(p, x, order, last, &moments);
        // In bf16 a last bit of the normalisation may round an operand the other way: 2^-9 of one term.
        kernels::simt::expect_close_to_scale(out, expected, p.bf16 && p.normalised ? 2e-3 : 3e-6, "out");
        if (!last) kernels::simt::expect_close(moments, moments_of(out, p.rows, p.columns), 1e-5, "moments");
      }
    }
}

TEST(OutputCollectorKernel, ARowHasTheSameBitsBesideAnyOthers) {
  const Problem many{19, 68, 21, true, false}, alone{1, 68, 21, true, false};
  const Floats x = kernels::simt::spread(many.rows * many.inner, 4);
  const Floats out = run(many, x, kernels::simt::kAllOrders[0], true);
  for (const int row : {0, 15, 16, 18}) {
    const Floats one(x.begin() + row * many.inner, x.begin() + (row + 1) * many.inner);
    EXPECT_EQ(run(alone, one, kernels::simt::kAllOrders[0], true),
              Floats(out.begin() + row * many.columns, out.begin() + (row + 1) * many.columns));
  }
}

}  // namespace
}  // namespace twinbench::energy_flow::output_collector
