// energy_flow.carrier_heads, optimized on the CPU: one pass over the flows after the product. Nothing is allocated and
// nothing read back after construction.
#include "optimized/common/rows.h"
#include "optimized/energy_flow/carrier_heads/heads.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

template <class Real>
TWINBENCH_CPU_CLONES void activate_row(const Real* __restrict sums, const Real* __restrict bias,
                                       Real* __restrict activated, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) activated[j] = kernels::gelu(sums[j] + bias[j]);
}

template <class Real>
TWINBENCH_CPU_CLONES void activation_gradient_row(Real* __restrict sums, const Real* __restrict bias,
                                                  const Real* __restrict grad, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) sums[j] = grad[j] * kernels::gelu_derivative(sums[j] + bias[j]);
}

template <class Real>
TWINBENCH_CPU_CLONES void add_scaled_row(const Real* __restrict row, Real scale, Real* __restrict sum,
                                         std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) sum[j] += scale * row[j];
}

// Sixteen partial sums, added pairwise: a fixed order that vector registers follow.
template <class Real>
TWINBENCH_CPU_CLONES Real dot(const Real* __restrict a, const Real* __restrict b, std::int64_t width) {
  Real partial[16] = {};
  std::int64_t j = 0;
  for (; j + 16 <= width; j += 16)
    for (int k = 0; k < 16; ++k) partial[k] += a[j + k] * b[j + k];
  for (int k = 0; j + k < width; ++k) partial[k] += a[j + k] * b[j + k];
  for (int half = 8; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) partial[k] += partial[k + half];
  return partial[0];
}

// The second layers' sums of a flow whose activations are `row`.
template <class Real>
Sums<Real> second_layers(const ForwardArguments<Real>& a, std::int64_t f, const Real* row) {
  const Columns& at = a.columns;
  const std::int64_t width = at.head_width;
  const Real *hidden = row + at.displacement(), *weight = a.displacement_out_weight, *bias = a.out_bias;
  Sums<Real> sums{};
  sums.energy = dot(row, a.energy_out_weight, at.energy_width) + bias[0];
  sums.displacement = {dot(hidden, weight, width) + bias[1], dot(hidden, weight + width, width) + bias[2],
                       dot(hidden, weight + 2 * width, width) + bias[3]};
  if (!a.rule.gate) return sums;
  sums.child = a.sums[f * at.all + at.child()] + a.bias[at.child()];
  sums.gate = dot(row + at.gate(), a.gate_out_weight, width) + bias[4];
  return sums;
}

template <class Real>
void finish_flow(const ForwardArguments<Real>& a, std::int64_t f) {
  const std::int64_t all = a.columns.all;
  Real* activated = a.activated + f * all;
  activate_row(a.sums + f * all, a.bias, activated, all);
  if (a.round) round_in_place(activated, all);
  const Sums<Real> sums = second_layers(a, f, activated);
  const auto result =
      carrier_heads::finish(a.rule, sums, Vector3<Real>::load(a.position, f),
                            static_cast<std::uint32_t>(a.sample_key[f]), static_cast<std::uint32_t>(a.local_id[f]));
  store_results(a, f, sums, result);
  if (a.second_sums) a.second_sums[f] = sums;
}

// Replaces the flow's sums by their gradients; `first` is scratch, [child()].
template <class Real>
void differentiate_flow(const BackwardArguments<Real>& a, std::int64_t f, Real* first) {
  const std::int64_t energy = a.columns.energy_width, width = a.columns.head_width, child = a.columns.child();
  SumGradients<Real> grad = finish_backward(a.rule, a.second_sums[f], a.spawn_count[f], given_gradients(a, f));
  grad.store(a.grad_second, f);
  if (a.second_operand) {
    grad.round();
    grad.store(a.second_operand, f);
  }
  std::fill_n(first, child, Real(0));
  add_scaled_row(a.energy_out_weight, grad.energy, first, energy);
  const Real displacement[] = {grad.displacement.x, grad.displacement.y, grad.displacement.z};
  for (int k = 0; k < 3; ++k)
    add_scaled_row(a.displacement_out_weight + k * width, displacement[k], first + energy, width);
  Real* sums = a.sums.plain + f * a.columns.all;
  activation_gradient_row(sums, a.bias, first, child);
  if (a.rule.gate) sums[child] = grad.child;
}

template <class Real>
class CpuHeads final : public Heads<Real> {
  using Heads<Real>::sums_, Heads<Real>::columns, Heads<Real>::flows;

 public:
  CpuHeads(const NamedTensors& inputs, const Setting& setting) : Heads<Real>(inputs, setting, at::kFloat, 1) {
    if (setting.backward())
      scratch_ = this->matrix(columns().all);
    else
      this->keep_activated();  // here also each flow's scratch
  }

 private:
  // A flow is a few microseconds of work; fewer than a grain are not worth waking a thread.
  template <class Body>
  void over_flows(Body body) {
    at::parallel_for(0, flows(), grain(columns().all), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) body(f);
    });
  }

  void round_operand(const at::Tensor& from, const at::Tensor& to) override { round_all<Real>(from, to); }
  void finish(const ForwardArguments<Real>& a) override {
    over_flows([&](std::int64_t f) { finish_flow(a, f); });
  }
  void differentiate(const BackwardArguments<Real>& a) override {
    Real* scratch = data<Real>(scratch_);
    over_flows([&](std::int64_t f) { differentiate_flow(a, f, scratch + f * columns().all); });
  }
  void sum_columns(const at::Tensor& rows, const at::Tensor& sums) override {
    twinbench::sum_columns<Real>(rows, sums);
  }
  void round_sums() override { round_all<Real>(sums_, sums_); }

  at::Tensor scratch_;  // [flows, all]
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuHeads<double>>(inputs, setting);
  return std::make_unique<CpuHeads<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads
