// energy_flow.flow_backward's kernels of a step's way back on the host executor, in every thread order: each against
// plain loops in double.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "kernels/energy_flow/common/neuron_gradients.h"
#include "kernels/energy_flow/flow_backward/heads_kernel.h"
#include "kernels/energy_flow/flow_backward/kernel_testing.h"
#include "kernels/energy_flow/flow_backward/layer_kernel.h"
#include "kernels/energy_flow/flow_backward/matrix_kernel.h"
#include "kernels/energy_flow/flow_backward/neuron_kernel.h"

namespace twinbench::energy_flow::flow_backward {
namespace {

// What a product by tensor cores makes of an operand.
double operand(float x, bool tf32) { return tf32 ? kernels::float_of_bits(simt::tf32_bits(x)) : x; }

struct Heads {
  std::int32_t energy, head;
  bool gate;
  int once;  // columns at a time
  bool round = false;
};
class HeadsBack : public testing::TestWithParam<Heads> {};

TEST_P(HeadsBack, GradientsOfColumnsAndOfSecondLayers) {
  const auto [energy, head, gate, once, round] = GetParam();
  const auto rounded = [round = round](double x) {
    return round ? double{kernels::round_to_bf16(static_cast<float>(x))} : x;
  };
  for (const auto& [slots, live] : kRows)
    for (const bool first : {true, false})
      for (const auto order : simt::kAllOrders) {
        Taped t(slots, live);
        const std::int32_t child = energy + head, all = (child + (gate ? 8 + head : 0) + 7) / 8 * 8;
        const std::int32_t trained = child + (gate ? 1 : 0), stride = (trained + 15) / 16 * 16;
        HeadsBackArguments a{.steps = {.slots = slots, .first = first}, .tape = t.tape, .adjoints = t.adjoints};
        a.rule = {.scale = 2, .threshold = 0.3f, .most = 3, .gate = gate};
        a.columns = {energy, head, all};
        ASSERT_EQ(carrier_heads::columns_at_once(a.columns), once);
        a.sums = t.floats(slots * all, 1), a.bias = t.floats(all, 2);
        a.energy_out_weight = t.floats(energy, 3), a.displacement_out_weight = t.floats(3 * head, 4);
        a.layout = {.trained = trained, .energy_width = energy, .head_width = head, .first_biases = round};
        a.round = round;
        a.gradient = t.floats(slots * stride, 5), a.gradient_stride = stride;
        const std::vector<float> before(a.gradient, a.gradient + slots * stride);
        // Two blocks: the first takes what is beyond the second's rows, too.
        a.partial = t.floats(2 * a.layout.stride(), 6);
        const std::vector<float> partial(a.partial, a.partial + 2 * a.layout.stride());
        const int vectors = (trained + once - 1) / once;
        const simt::Size3 grid{2, static_cast<unsigned>((vectors + 31) / 32), 1};
        const auto run = [&]<class Kernel>(Kernel kernel) {
          simt::run_clean(kernel, grid, kColumnThreads, order, a, Kernel::documented_shared_bytes());
        };
        if (once == 4)
          round ? run(RoundedHeadColumns{}) : run(HeadColumns{});
        else
          round ? run(RoundedHeadColumnsAnyWidth{}) : run(HeadColumnsAnyWidth{});
        std::vector<double> due(size(a.layout.all()));
        for (std::int32_t row = 0; row < live; ++row) {
          const std::int32_t slot = t.tape.slot[row];
          const auto sum = [&](int i) { return double{t.tape.second_sums[i * slots + row]}; };
          const carrier_heads::SumGradients<double> grad = carrier_heads::finish_backward<double>(
              {.scale = 2, .threshold = 0.3, .most = 3, .gate = gate}, {sum(0), {sum(1), sum(2), sum(3)}, 0, sum(4)},
              t.tape.requests[row],
              {.energy = t.adjoints.energy[slot],
               .displacement = {},
               .delta = {double{t.tape.slope_x[row]} * t.adjoints.x[slot],
                         double{t.tape.slope_y[row]} * t.adjoints.y[slot], t.adjoints.z[slot]},
               .raw = {},
               .child_energy = t.over_children(row, [&](std::int32_t one) { return t.adjoints.energy[one]; })});
          const double along[] = {grad.displacement.x, grad.displacement.y, grad.displacement.z};
          due[size(a.layout.out_bias())] += grad.energy;
          for (int k = 0; k < 3; ++k) due[size(a.layout.out_bias() + 1 + k)] += along[k];
          const double moved[] = {rounded(along[0]), rounded(along[1]), rounded(along[2])},
                       shone = rounded(grad.energy);
          for (std::int32_t c = 0; c < trained; ++c) {
            const double x = double{a.sums[row * all + c]} + a.bias[c];
            double gradient = c < child ? 0 : grad.child;
            if (c < energy) {
              gradient = shone * a.energy_out_weight[c] * kernels::gelu_derivative(x);
              due[size(c)] += shone * rounded(kernels::gelu(x));
            } else if (c < child) {
              for (int k = 0; k < 3; ++k) {
                gradient += moved[k] * a.displacement_out_weight[k * head + c - energy] * kernels::gelu_derivative(x);
                due[size(k * head + c)] += moved[k] * rounded(kernels::gelu(x));
              }
            }
            if (round) due[size(a.layout.first_bias() + c)] += gradient;
            // A last bit of fp32 before a rounding may move it by one place of bf16, of what was rounded before too.
            const double flip = round ? 0x1p-7 * (std::abs(gradient) + std::abs(shone) + 1) : 0;
            ASSERT_NEAR(a.gradient[row * stride + c], gradient, 2e-5 + flip) << row << ' ' << c;
            if (round) {
              ASSERT_EQ(a.gradient[row * stride + c], kernels::round_to_bf16(a.gradient[row * stride + c]));
            }
          }
        }
        for (std::int64_t i = live * stride; i < slots * stride; ++i) ASSERT_EQ(a.gradient[i], before[size(i)]) << i;
        for (std::int32_t i = 0; i < a.layout.all(); ++i) {
          const std::int32_t next = a.layout.stride() + i;
          const double old = first ? 0 : double{partial[size(i)]} + partial[size(next)];
          const double flips = round && i < a.layout.out_bias() ? 0.02 * std::sqrt(live) : 0;
          ASSERT_NEAR(a.partial[i] + a.partial[next], old + due[size(i)], 1e-4 + flips) << i << ' ' << first;
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Widths, HeadsBack,
                         testing::Values(Heads{8, 12, false, 4}, Heads{128, 64, true, 4}, Heads{3, 6, false, 1},
                                         Heads{5, 9, true, 1}, Heads{40, 3, false, 1}, Heads{8, 12, false, 4, true},
                                         Heads{5, 9, true, 1, true}));

// ---- layers -----------------------------------------------------------------------------------------------------

TEST(LayerKernels, GatesPassWhatTheGuardsAndGatesPass) {
  for (const auto& [slots, live] : kRows)
    for (const std::int32_t stride : {16, 48, 1040})
      for (const auto& [top, stores] : {std::pair(false, false), std::pair(true, true)})
        for (const auto order : simt::kAllOrders) {
          if (stride > 48 && live > 31) continue;
          Taped t(slots, live);
          GatesBackArguments a{.slots = slots, .tape = t.tape, .stride = stride, .top = top};
          const std::int64_t rows = slots * stride;
          float *const gates = t.floats(4 * rows, 1), *const state = t.floats(rows, 2);
          if (live > 30) state[t.tape.source[0] * stride] = kNaN, state[t.tape.source[1] * stride + 1] = 30.0f;
          for (std::int64_t row = 0; row < slots; ++row)  // update and candidate that lead beyond the guard
            gates[(4 * row + 1) * stride + 3] = 0.0f, gates[(4 * row + 2) * stride + 3] = 11.0f;
          if (stores)
            a.stored = t.halves(state, rows);
          else
            a.state = state;
          a.gates = gates, a.above = t.floats(rows, 3), a.hidden = t.floats(rows, 4);
          a.of_input = t.floats(3 * rows, 5), a.of_state = t.floats(3 * rows, 6);
          const std::vector<float> hidden(a.hidden, a.hidden + rows);
          const std::int32_t each = rows_of_block(stride);
          simt::run_clean(GatesBack{}, static_cast<unsigned>((slots + each - 1) / each), kGateThreads, order, a);
          for (std::int32_t row = 0; row < live; ++row)
            for (std::int32_t c = 0; c < stride; ++c) {
              const std::int32_t source = t.tape.source[row], slot = t.tape.slot[row];
              const auto gate = [&](int i) { return double{gates[(4 * row + i) * stride + c]}; };
              const double before =
                  source < 0 ? 0 : double{kernels::operand(kernels::guard(state[source * stride + c], 10.0f), stores)};
              const double stored = hidden[size(slot * stride + c)] + t.over_children(row, [&](std::int32_t one) {
                return hidden[size(one * stride + c)];
              });
              const auto due = energy_carrier::guarded_channel_gradient<double>(
                  gate(0), gate(1), gate(2), gate(3), before, stored, a.above[row * stride + c], top);
              const float *const x = a.of_input + 3 * row * stride + c, *const h = a.of_state + 3 * row * stride + c;
              const double got[] =
                  {x[0], x[stride], x[2 * stride], h[0], h[stride], h[2 * stride], a.hidden[slot * stride + c]},
                           want[] = {due.reset_sum,  due.update_sum,       due.candidate_input, due.reset_sum,
                                     due.update_sum, due.candidate_hidden, due.hidden};
              for (int i = 0; i < 7; ++i)
                ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::abs(want[i]))) << row << ' ' << c << ' ' << i;
            }
          for (std::int64_t slot = live; slot < slots; ++slot)
            ASSERT_EQ(a.hidden[slot * stride], hidden[size(slot * stride)]) << slot;
        }
}

TEST(LayerKernels, StatesComeFromGatesAndStoredStates) {
  for (const auto& [slots, live] : kRows)
    for (const std::int32_t stride : {16, 48, 1040})
      for (const auto order : simt::kAllOrders) {
        if (stride > 48 && live > 31) continue;
        Taped t(slots, live);
        constexpr std::int32_t kLayers = 2;
        const std::int64_t rows = slots * stride;
        float* const state = t.floats(kLayers * rows, 2, 12);
        if (live > 30) state[t.tape.source[0] * stride] = kNaN;
        NextStatesArguments a{.slots = slots,
                              .total = t.tape.total,
                              .source = t.tape.source,
                              .stride = stride,
                              .layers = kLayers,
                              .stored = t.halves(state, kLayers * rows),
                              .gates = t.floats(kLayers * 4 * rows, 1),
                              .next = t.floats(kLayers * rows, 3)};
        const std::vector<float> before(a.next, a.next + kLayers * rows);
        const auto blocks = static_cast<unsigned>((slots + rows_of_block(stride) - 1) / rows_of_block(stride));
        simt::run_clean(NextStates{}, {blocks, kLayers, 1}, kGateThreads, order, a);
        for (std::int32_t l = 0; l < kLayers; ++l)
          for (std::int32_t row = 0; row < slots; ++row)
            for (std::int32_t c = 0; c < stride; ++c) {
              const std::int64_t at = l * rows + row * stride + c;
              if (row >= live) {
                ASSERT_EQ(a.next[at], before[size(at)]) << l << ' ' << row << ' ' << c;
                continue;
              }
              const std::int32_t source = t.tape.source[row];
              const float* const gate = a.gates + 4 * (l * rows + row * stride) + c;
              const float was = source < 0 ? 0 : kernels::round_to_bf16(state[l * rows + source * stride + c]);
              ASSERT_EQ(a.next[at],
                        energy_carrier::next_state(gate[stride], gate[2 * stride], kernels::guard(was, 10.0f)))
                  << l << ' ' << row << ' ' << c;
            }
      }
}

template <class Kernel>
void products_to_rows_and_to_adjoints(Kernel kernel, bool tf32, bool stores = false) {
  for (const auto& [slots, live] : kRows)
    for (const auto& [inner, rows_columns, columns] : {std::array{48, 16, 32}, std::array{96, 112, 16}})
      for (const auto order : simt::kAllOrders) {
        Taped t(slots, live);
        ProductsArguments a{.count = 2};
        simt::Floats weights[2];
        for (int i = 0; i < 2; ++i) {
          ProductArguments& of = a.of[i];
          const std::int32_t wide_columns = i == 0 ? rows_columns : columns, tiles = (wide_columns + 95) / 96;
          weights[i] = simt::spread(tiles * inner * 96, 7 + static_cast<unsigned>(i));
          of.tile = {.total = t.tape.total,
                     .rows = slots,
                     .input = t.floats(slots * inner, 1 + static_cast<unsigned>(i)),
                     .input_stride = inner,
                     .weights = t.all_floats.emplace_back(weights[i], "values", 16).data(),
                     .columns = wide_columns};
        }
        a.of[0].tile.out = t.floats(slots * rows_columns, 3);
        float* const before = t.floats(slots * columns, 4);
        if (live > 30) before[t.tape.source[0] * columns] = kNaN, before[t.tape.source[1] * columns + 1] = -30.0f;
        a.of[1].adjoints = t.floats(slots * columns, 5);
        if (stores)
          a.of[1].stored_before = t.halves(before, slots * columns);
        else
          a.of[1].before = before;
        a.of[1].slot = t.tape.slot, a.of[1].source = t.tape.source;
        const std::vector<float> out(a.of[0].tile.out, a.of[0].tile.out + slots * rows_columns),
            direct(a.of[1].adjoints, a.of[1].adjoints + slots * columns);
        const unsigned tiles = static_cast<unsigned>((std::max(rows_columns, columns) + 95) / 96 * ((slots + 63) / 64));
        simt::run_clean(kernel, {tiles, 2, 1}, flow_forward::kTileThreads, order, a, flow_forward::kTileBytes);
        const auto sum = [&, inner = inner](int i, std::int32_t row, std::int32_t column) {
          double total = 0;
          for (std::int32_t k = 0; k < inner; ++k)
            total += operand(a.of[i].tile.input[row * inner + k], tf32) *
                     operand(weights[i][size((column / 96 * inner + k) * 96 + column % 96)], tf32);
          return total;
        };
        std::vector<float> wanted = direct;
        for (std::int32_t row = 0; row < slots; ++row)
          for (std::int32_t c = 0; c < rows_columns; ++c)
            ASSERT_NEAR(a.of[0].tile.out[row * rows_columns + c],
                        row < live ? sum(0, row, c) : out[size(row * rows_columns + c)], 5e-5);
        for (std::int32_t row = 0; row < live; ++row)
          for (std::int32_t c = 0; c < columns && t.tape.source[row] >= 0; ++c) {
            const float value = before[t.tape.source[row] * columns + c];
            float& due = wanted[size(t.tape.slot[row] * columns + c)];
            due = std::abs(value) <= 10 ? due + static_cast<float>(sum(1, row, c)) : 0.0f;
          }
        for (std::int32_t i = 0; i < slots * columns; ++i) ASSERT_NEAR(a.of[1].adjoints[i], wanted[size(i)], 5e-5) << i;
      }
}

TEST(LayerKernels, ProductsToRowsAndToAdjoints) { products_to_rows_and_to_adjoints(Products{}, false); }
TEST(LayerKernels, ProductsToAdjointsOfStoredStates) { products_to_rows_and_to_adjoints(Products{}, false, true); }
TEST(LayerKernels, ProductsByTensorCores) { products_to_rows_and_to_adjoints(ProductsTf32{}, true); }

// round: the second matrix's values, to bf16; stores: they are already.
template <class Kernel>
void matrices_in_pieces(Kernel kernel, bool round, bool tf32, bool stores = false) {
  for (const auto& [slots, live] : kRows)
    for (const auto& [gradients, width, other] : {std::array{48, 16, 80}, std::array{112, 144, 16}})
      for (const std::int32_t pieces : {1, 3})
        for (const bool first : {true, false})
          for (const auto order : simt::kAllOrders) {
            Taped t(slots, live);
            MatricesArguments a{
                .steps = {.slots = slots, .first = first}, .total = t.tape.total, .count = 2, .pieces = pieces};
            const std::int32_t widths[] = {width, other};
            for (int i = 0; i < 2; ++i) {
              const auto seed = static_cast<unsigned>(i);
              a.of[i] = {.gradient = t.floats(slots * gradients, 1 + seed),
                         .values = t.floats(slots * widths[i], 3 + seed, 12),
                         .source = i == 1 ? t.tape.source : nullptr,
                         .guards = i == 1,
                         .round = round && i == 1,
                         .gradients = gradients,
                         .width = widths[i],
                         .weight = a.stride,
                         .bias = a.stride + gradients * widths[i]};
              a.stride = a.of[i].bias + gradients;
            }
            if (stores) a.of[1].stored = t.halves(a.of[1].values, slots * other);
            a.partial = t.floats(pieces * a.stride, 5);
            const std::vector<float> before(a.partial, a.partial + pieces * a.stride);
            const auto tiles =
                static_cast<unsigned>(std::max(matrix_tiles(gradients, width), matrix_tiles(gradients, other)));
            simt::run_clean(kernel, {tiles, 2, static_cast<unsigned>(pieces)}, kMatrixThreads, order, a,
                            flow_forward::kTileBytes);
            const auto got = [&](std::int64_t at) {
              double sum = 0;
              for (std::int32_t piece = 0; piece < pieces; ++piece)
                sum += double{a.partial[piece * a.stride + at]} - (first ? 0 : before[size(piece * a.stride + at)]);
              return sum;
            };
            for (int i = 0; i < 2; ++i) {
              const MatrixArguments& of = a.of[i];
              for (std::int32_t g = 0; g < gradients; ++g) {
                double bias = 0;
                for (std::int32_t row = 0; row < live; ++row) bias += of.gradient[row * gradients + g];
                ASSERT_NEAR(got(of.bias + g), bias, 1e-4) << g;
                for (std::int32_t v = 0; v < of.width; v += 1 + g % 5) {
                  double due = 0;
                  for (std::int32_t row = 0; row < live; ++row) {
                    const std::int32_t from = i == 1 ? t.tape.source[row] : row;
                    const float value = from < 0 ? 0.0f : of.values[from * of.width + v];
                    const float read = i == 1 ? kernels::operand(kernels::guard(value, 10.0f), round || stores) : value;
                    due += operand(of.gradient[row * gradients + g], tf32) * operand(read, tf32);
                  }
                  ASSERT_NEAR(got(of.weight + g * of.width + v), due, 1e-3) << i << ' ' << g << ' ' << v;
                }
              }
            }
          }
}

TEST(LayerKernels, MatricesInPiecesStepByStep) { matrices_in_pieces(Matrices{}, false, false); }
TEST(LayerKernels, MatricesOfRoundedValues) { matrices_in_pieces(RoundedMatrices{}, true, false); }
TEST(LayerKernels, MatricesOfStoredValues) { matrices_in_pieces(Matrices{}, false, false, true); }
TEST(LayerKernels, MatricesByTensorCores) { matrices_in_pieces(MatricesTf32{}, false, true); }

// ---- the neuron -------------------------------------------------------------------------------------------------

TEST(NeuronKernel, WalksBackAsOnTheHost) {
  const simple_neuron::Layout layout{9, 7};
  for (const auto& [slots, live] : kRows)
    for (const bool first : {true, false})
      for (const auto order : simt::kAllOrders) {
        Taped t(slots, live);
        if (live > 30) t.tape.energy[3] = kNaN, t.tape.energy[8] = kInfinity, t.tape.energy[9] = 10.5f;
        const Taped before = Taped(slots, live);
        const simt::Floats weights = simt::spread(layout.total(), 8, 2);
        NeuronBackArguments a{.steps = {.slots = slots, .first = first},
                              .tape = t.tape,
                              .adjoints = t.adjoints,
                              .layout = layout,
                              .weights = t.all_floats.emplace_back(weights, "values", 16).data(),
                              .grad_input = t.floats(slots * 16, 9),
                              .input_stride = 16};
        a.partial = t.floats(2 * layout.padded(), 10);
        const std::vector<float> partial(a.partial, a.partial + 2 * layout.padded());
        simt::run_clean(NeuronBack{}, 2, simple_neuron::kNeuronThreads, order, a,
                        simple_neuron::backward_shared_bytes(layout));
        using Tile = simple_neuron::Tile<1, double>;
        using Sums = simple_neuron::Gradients<1, double>;
        std::vector<double> memory(size(Tile::size(layout))), packed(size(layout.total())),
            lanes(size(Sums::lane_sum_size(layout))), rows(size(Sums::rows_size(layout))),
            exact(weights.begin(), weights.end());
        const Tile tile{layout, memory.data()};
        const Sums sums{layout, packed.data(), lanes.data(), rows.data()};
        for (std::int32_t row = 0; row < live; ++row) {
          const float energy = t.tape.energy[row];
          const bool usable = std::isfinite(energy);
          tile.position()[0] = t.tape.x[row], tile.position()[1] = t.tape.y[row], tile.position()[2] = t.tape.z[row];
          tile.energy()[0] = usable ? energy : 0;
          simple_neuron::forward(tile, exact.data(), false);
          for (int c = 0; c < layout.outputs; ++c)
            tile.features()[c] =
                usable ? kernels::guard_gradient<double>(tile.features()[c], 10, a.grad_input[row * 16 + c]) : 0;
          simple_neuron::walk_back(tile, exact.data(), false, sums);
          const std::int32_t slot = t.tape.slot[row];
          const double of_energy =
              tile.energy_gradient()[0] + (std::abs(energy) <= 10 ? a.grad_input[row * 16 + 7] : 0);
          ASSERT_NEAR(t.adjoints.energy[slot], of_energy, 2e-4) << row;
          const float *const was[] = {before.adjoints.x, before.adjoints.y, before.adjoints.z}, *const is[] = {
                                                                                                    t.adjoints.x,
                                                                                                    t.adjoints.y,
                                                                                                    t.adjoints.z};
          const double slopes[] = {t.tape.slope_x[row], t.tape.slope_y[row], 1};
          for (int axis = 0; axis < 3; ++axis)
            ASSERT_NEAR(is[axis][slot],
                        slopes[axis] * was[axis][slot] + tile.position_gradient()[axis] +
                            t.over_children(row, [&](std::int32_t one) { return was[axis][one]; }),
                        2e-4)
                << row << ' ' << axis;
        }
        sums.finish();
        for (int i = 0; i < layout.total(); ++i) {
          const int next = layout.padded() + i;
          const double old = first ? 0 : double{partial[size(i)]} + partial[size(next)];
          ASSERT_NEAR(a.partial[i] + a.partial[next], old + packed[size(i)], 3e-3) << i;
        }
      }
}

}  // namespace
}  // namespace twinbench::energy_flow::flow_backward
