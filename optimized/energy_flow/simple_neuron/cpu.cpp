// Optimized energy_flow.simple_neuron on the CPU: tiles of 16 flows through all layers in cache, no ATen operator at all.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "src/common/cpu_clones.h"
#include "kernels/energy_flow/simple_neuron/tile.h"
#include "optimized/energy_flow/simple_neuron/pack.h"
#include "src/component.h"

namespace twinbench::energy_flow::simple_neuron {
namespace {


constexpr int kLanes = 16;  // one AVX-512 register, two AVX2 registers

// A strided [flows, channels] view of an input, so that non-contiguous tensors cost no copy.
template <class Real>
struct Rows {
  const Real* data = nullptr;
  std::int64_t row_stride = 0, column_stride = 0;
};

template <class Real>
Rows<Real> rows_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<Real>(), tensor.stride(0), tensor.stride(1)};
}

template <class Real>
struct Arguments {
  SimpleNeuronLayout layout;
  bool round = false;
  const Real* weights = nullptr;
  Rows<Real> position, energy, grad_features;
  Real* features = nullptr;       // [flows, outputs], forward
  Real* grad_position = nullptr;  // [flows, 3], backward
  Real* grad_energy = nullptr;    // [flows, 1], backward
};

// rows [begin, begin + count) of `from`, transposed into [columns][kLanes]; lanes past `count` are zero.
template <class Real>
inline __attribute__((always_inline)) void load(const Rows<Real>& from, std::int64_t begin, int count, int columns, Real* to) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const Real* row = from.data + (begin + lane) * from.row_stride;
    for (int c = 0; c < columns; ++c) to[c * kLanes + lane] = lane < count ? row[c * from.column_stride] : Real(0);
  }
}

template <class Real>
inline __attribute__((always_inline)) void store(const Real* from, int count, int columns, Real* to) {
  for (int lane = 0; lane < count; ++lane)
    for (int c = 0; c < columns; ++c) to[lane * columns + c] = from[c * kLanes + lane];
}

template <class Real>
TWINBENCH_CPU_CLONES void forward_flows(const Arguments<Real>& a, std::int64_t begin, std::int64_t end, Real* scratch) {
  const SimpleNeuronTile<kLanes, Real> tile{a.layout, scratch};
  for (std::int64_t flow = begin; flow < end; flow += kLanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(kLanes, end - flow));
    load(a.position, flow, count, 3, tile.position());
    load(a.energy, flow, count, 1, tile.energy());
    round_operands<kLanes>(3, tile.position(), a.round);
    simple_neuron_forward(tile, a.weights, a.round);
    store(tile.features(), count, a.layout.outputs, a.features + flow * a.layout.outputs);
  }
}

template <class Real>
TWINBENCH_CPU_CLONES void backward_flows(const Arguments<Real>& a, std::int64_t begin, std::int64_t end, Real* scratch,
                                         const SimpleNeuronGradients<kLanes, Real>& sums) {
  const SimpleNeuronTile<kLanes, Real> tile{a.layout, scratch};
  for (std::int64_t flow = begin; flow < end; flow += kLanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(kLanes, end - flow));
    load(a.position, flow, count, 3, tile.position());
    load(a.energy, flow, count, 1, tile.energy());
    load(a.grad_features, flow, count, a.layout.outputs, tile.features());
    round_operands<kLanes>(3, tile.position(), a.round);
    simple_neuron_backward(tile, a.weights, a.round, sums);
    store(tile.position_gradient(), count, 3, a.grad_position + flow * 3);
    store(tile.energy_gradient(), count, 1, a.grad_energy + flow);
  }
  sums.finish();
}

template <class Real>
class SimpleNeuronOptimized : public Runnable {
 public:
  SimpleNeuronOptimized(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), packed_(energy_flow::simple_neuron::pack_simple_neuron(inputs, setting)) {
    arguments_.layout = packed_.layout;
    arguments_.round = packed_.round;
    arguments_.weights = packed_.weights.const_data_ptr<Real>();
    arguments_.position = rows_of<Real>(inputs["position"]);
    arguments_.energy = rows_of<Real>(inputs["energy"]);
    const std::int64_t flows = packed_.flows;
    // Flows are cut into pieces by their number alone, so that sums do not depend on the number of threads.
    if (packed_.backward) {
      piece_ = std::max<std::int64_t>(kBackwardPiece, round_up((flows + kMostPieces - 1) / kMostPieces));
      arguments_.grad_features = rows_of<Real>(inputs["grad_features"]);
      grad_position_ = at::empty({flows, 3}, kReal);
      grad_energy_ = at::empty({flows, 1}, kReal);
      arguments_.grad_position = grad_position_.mutable_data_ptr<Real>();
      arguments_.grad_energy = grad_energy_.mutable_data_ptr<Real>();
      const SimpleNeuronLayout& layout = packed_.layout;
      total_ = at::zeros({layout.total()}, kReal);
      partial_ = at::empty({pieces(), layout.total()}, kReal);
      lane_sums_ = at::empty({pieces(), SimpleNeuronGradients<kLanes, Real>::lane_sum_size(layout)}, kReal);
      rows_ = at::empty({pieces(), SimpleNeuronGradients<kLanes, Real>::rows_size(layout)}, kReal);
    } else {
      const std::int64_t threads = at::get_num_threads();
      piece_ = std::max<std::int64_t>(kForwardPiece, round_up((flows + threads - 1) / threads));
      features_ = at::empty({flows, packed_.layout.outputs}, kReal);
      arguments_.features = features_.mutable_data_ptr<Real>();
    }
    scratch_ = at::empty({pieces(), SimpleNeuronTile<kLanes, Real>::size(packed_.layout)}, kReal);
  }

  void run() override {
    if (packed_.backward)
      run_backward();
    else
      at::parallel_for(0, pieces(), 1, [this](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) forward_flows(arguments_, i * piece_, last(i), scratch(i));
      });
  }

  NamedTensors outputs() override {
    if (!packed_.backward) return {{"features", features_}};
    NamedTensors results{{"grad_position", grad_position_}, {"grad_energy", grad_energy_}};
    energy_flow::simple_neuron::unpack_simple_neuron_gradients(total_, packed_.layout, results);
    return results;
  }

 private:
  static constexpr at::ScalarType kReal = c10::CppTypeToScalarType<Real>::value;
  // About 100 us of work: waking a thread costs 10 us on an idle machine, and milliseconds on a busy one.
  static constexpr std::int64_t kForwardPiece = 1024, kBackwardPiece = 512;
  static constexpr std::int64_t kMostPieces = 64;      // bounds the partial sums at 64 times the weights

  static std::int64_t round_up(std::int64_t flows) { return (flows + kLanes - 1) / kLanes * kLanes; }
  std::int64_t pieces() const { return (packed_.flows + piece_ - 1) / piece_; }
  std::int64_t last(std::int64_t i) const { return std::min(packed_.flows, (i + 1) * piece_); }
  Real* scratch(std::int64_t i) { return row(scratch_, i); }
  static Real* row(at::Tensor& of, std::int64_t i) { return of.mutable_data_ptr<Real>() + i * of.size(1); }

  void run_backward() {
    at::parallel_for(0, pieces(), 1, [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(row(partial_, i), partial_.size(1), Real(0));
        std::fill_n(row(lane_sums_, i), lane_sums_.size(1), Real(0));
        backward_flows(arguments_, i * piece_, last(i), scratch(i),
                       {packed_.layout, row(partial_, i), row(lane_sums_, i), row(rows_, i)});
      }
    });
    Real* total = total_.mutable_data_ptr<Real>();
    std::fill_n(total, total_.numel(), Real(0));
    for (std::int64_t i = 0; i < pieces(); ++i) {
      const Real* part = row(partial_, i);
      for (std::int64_t j = 0; j < total_.numel(); ++j) total[j] += part[j];
    }
  }

  NamedTensors inputs_;  // kept alive: the arguments point into them
  energy_flow::simple_neuron::PackedSimpleNeuron packed_;
  Arguments<Real> arguments_;
  std::int64_t piece_ = 0;
  at::Tensor features_, grad_position_, grad_energy_;
  at::Tensor scratch_, total_, partial_, lane_sums_, rows_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<SimpleNeuronOptimized<double>>(inputs, setting);
  return std::make_unique<SimpleNeuronOptimized<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::simple_neuron
