// Optimized energy_flow.simple_neuron on the CPU: tiles of 16 flows through all layers in cache, no ATen operator.
#include <ATen/ATen.h>

#include "kernels/energy_flow/common/neuron_gradients.h"
#include "optimized/common/rows.h"
#include "optimized/energy_flow/simple_neuron/neuron.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {

constexpr int kLanes = 16;  // one AVX-512 register, two AVX2 registers

// Rows [begin, begin + count) of `from`, transposed into [columns][kLanes]; lanes past `count` are zero.
template <class Real>
TWINBENCH_HOST_DEVICE void load(const kernels::StridedRows<Real>& from, std::int64_t begin, int count, int columns,
                                Real* to) {
  for (int lane = 0; lane < kLanes; ++lane)
    for (int c = 0; c < columns; ++c) to[c * kLanes + lane] = lane < count ? from.at(begin + lane, c) : Real(0);
}

template <class Real>
TWINBENCH_HOST_DEVICE void store(const Real* from, int count, int columns, Real* to) {
  for (int lane = 0; lane < count; ++lane)
    for (int c = 0; c < columns; ++c) to[lane * columns + c] = from[c * kLanes + lane];
}

template <class Real>
TWINBENCH_HOST_DEVICE int load_inputs(const Arguments<Real>& a, std::int64_t flow, std::int64_t end,
                                      const Tile<kLanes, Real>& tile) {
  const int count = static_cast<int>(std::min<std::int64_t>(kLanes, end - flow));
  load(a.position, flow, count, 3, tile.position());
  load(a.energy, flow, count, 1, tile.energy());
  kernels::tile::round_operands<kLanes>(3, tile.position(), a.round);
  return count;
}

// The last layer of kLanes flows, in the order in which it is returned: a column a lane, so that nothing is transposed.
// The same sums as forward() makes, term by term.
template <class Real>
TWINBENCH_HOST_DEVICE void features_by_flow(const Tile<kLanes, Real>& tile, const Real* __restrict weights,
                                            Real* __restrict features) {
  constexpr int kFlows = 8;  // whose sums stay in registers
  const Layout& at = tile.layout;
  const Real* __restrict hidden = tile.hidden(1);
  const Real* __restrict matrix = weights + at.weight_out();
  const Real* __restrict bias = weights + at.bias_out();
  for (int first = 0; first < kLanes; first += kFlows)
    for (int c = 0; c < at.outputs; c += kLanes) {
      Real sum[kFlows][kLanes];
      for (int f = 0; f < kFlows; ++f)
        for (int lane = 0; lane < kLanes; ++lane) sum[f][lane] = bias[c + lane];
      for (int j = 0; j < at.hidden; ++j) {
#pragma GCC unroll 8
        for (int f = 0; f < kFlows; ++f) {
          const Real of_flow = hidden[j * kLanes + first + f];
#pragma GCC unroll 1
          for (int lane = 0; lane < kLanes; ++lane)
            sum[f][lane] = kernels::multiply_add(of_flow, matrix[j * at.outputs + c + lane], sum[f][lane]);
        }
      }
      for (int f = 0; f < kFlows; ++f)
        for (int lane = 0; lane < kLanes; ++lane) features[(first + f) * at.outputs + c + lane] = sum[f][lane];
    }
}

template <class Real>
TWINBENCH_HOST_DEVICE void forward_tiles(const Arguments<Real>& a, std::int64_t begin, std::int64_t end,
                                         Real* scratch) {
  const Tile<kLanes, Real> tile{a.layout, scratch};
  for (std::int64_t flow = begin; flow < end; flow += kLanes) {
    const int count = load_inputs(a, flow, end, tile);
    Real* const to = a.features + flow * a.layout.outputs;
    if (count == kLanes && a.layout.outputs % kLanes == 0) {
      hidden_layers(tile, a.weights, a.round);
      features_by_flow(tile, a.weights, to);
      continue;
    }
    forward(tile, a.weights, a.round);
    store(tile.features(), count, a.layout.outputs, to);
  }
}

template <class Real>
TWINBENCH_HOST_DEVICE void backward_tiles(const Arguments<Real>& a, std::int64_t begin, std::int64_t end, Real* scratch,
                                          const Gradients<kLanes, Real>& sums) {
  const Tile<kLanes, Real> tile{a.layout, scratch};
  for (std::int64_t flow = begin; flow < end; flow += kLanes) {
    const int count = load_inputs(a, flow, end, tile);
    load(a.grad_features, flow, count, a.layout.outputs, tile.features());
    backward(tile, a.weights, a.round, sums);
    store(tile.position_gradient(), count, 3, a.grad_position + flow * 3);
    store(tile.energy_gradient(), count, 1, a.grad_energy + flow);
  }
  sums.finish();
}

// fp64 proves gradients and is never timed: one form for every processor, where three take 12 s to compile.
TWINBENCH_CPU_CLONES void forward_flows(const Arguments<float>& a, std::int64_t begin, std::int64_t end,
                                        float* scratch) {
  forward_tiles(a, begin, end, scratch);
}

void forward_flows(const Arguments<double>& a, std::int64_t begin, std::int64_t end, double* scratch) {
  forward_tiles(a, begin, end, scratch);
}

TWINBENCH_CPU_CLONES void backward_flows(const Arguments<float>& a, std::int64_t begin, std::int64_t end,
                                         float* scratch, const Gradients<kLanes, float>& sums) {
  backward_tiles(a, begin, end, scratch, sums);
}

void backward_flows(const Arguments<double>& a, std::int64_t begin, std::int64_t end, double* scratch,
                    const Gradients<kLanes, double>& sums) {
  backward_tiles(a, begin, end, scratch, sums);
}

// About 100 us of work: waking a thread costs 10 us on an idle machine, and milliseconds on a busy one.
constexpr std::int64_t kForwardPiece = 1024, kBackwardPiece = 512;
constexpr std::int64_t kMostPieces = 64;  // bounds the partial sums at 64 times the weights

// Of the backward pass by the flows alone, so that sums do not depend on the number of threads.
Pieces pieces_of(const Setting& setting) {
  const std::int64_t flows = setting.size("flows");
  return setting.backward() ? Pieces::of(flows, kBackwardPiece, kMostPieces, kLanes)
                            : Pieces::of(flows, kForwardPiece, at::get_num_threads(), kLanes);
}

template <class Real>
class CpuNeuron final : public Neuron<Real> {
  using Neuron<Real>::arguments_, Neuron<Real>::partial_, Neuron<Real>::grad_weights_;

 public:
  CpuNeuron(const NamedTensors& inputs, const Setting& setting)
      : Neuron<Real>(inputs, setting), pieces_(pieces_of(setting)) {
    const Layout& layout = arguments_.layout;
    const auto scratch = [&](std::int64_t size) {
      return at::empty({pieces_.number(), size}, this->weights_.options());
    };
    tiles_ = scratch(Tile<kLanes, Real>::size(layout));
    if (!setting.backward()) return;
    this->make_partial(pieces_.number());
    lane_sums_ = scratch(Gradients<kLanes, Real>::lane_sum_size(layout));
    rows_ = scratch(Gradients<kLanes, Real>::rows_size(layout));
  }

  void run() override {
    if (!this->setting_.backward()) {
      pieces_.each([this](std::int64_t i, std::int64_t begin, std::int64_t end) {
        forward_flows(arguments_, begin, end, row(tiles_, i));
      });
      return;
    }
    pieces_.each([this](std::int64_t i, std::int64_t begin, std::int64_t end) {
      std::fill_n(row(partial_, i), partial_.size(1), Real(0));
      std::fill_n(row(lane_sums_, i), lane_sums_.size(1), Real(0));
      backward_flows(arguments_, begin, end, row(tiles_, i),
                     Gradients<kLanes, Real>{arguments_.layout, row(partial_, i), row(lane_sums_, i), row(rows_, i)});
    });
    sum_columns<Real>(partial_, grad_weights_, partial_.size(1));
  }

 private:
  static Real* row(const at::Tensor& of, std::int64_t i) { return data<Real>(of) + i * of.size(1); }

  Pieces pieces_;
  at::Tensor tiles_, lane_sums_, rows_;  // scratch of every piece
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuNeuron<double>>(inputs, setting);
  return std::make_unique<CpuNeuron<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron
