// energy_flow.carrier_heads, optimized on the CPU: one pass over the flows after a product of our own. Nothing is
// allocated and nothing read back after construction.
#include "optimized/common/panel_product.h"
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
  if (a.second_sums) store_sums(a.second_sums, a.flows, f, sums);
}

// Replaces the flow's sums by their gradients; `first` is scratch, [child()].
template <class Real>
void differentiate_flow(const BackwardArguments<Real>& a, std::int64_t f, Real* first) {
  const std::int64_t energy = a.columns.energy_width, width = a.columns.head_width, child = a.columns.child();
  SumGradients<Real> grad = finish_backward(a.rule, load_sums(a.second_sums, a.flows, f, a.rule.gate), a.spawn_count[f],
                                            given_gradients(a, f));
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
  Real* sums = a.gradient.plain + f * a.columns.all;
  activation_gradient_row(sums, a.bias, first, child);
  if (a.rule.gate) sums[child] = grad.child;
}

template <class Real>
class CpuHeads final : public Heads<Real> {
  using Heads<Real>::sums_, Heads<Real>::activated_, Heads<Real>::columns, Heads<Real>::flows;

 public:
  CpuHeads(const NamedTensors& inputs, const Setting& setting) : Heads<Real>(inputs, setting, at::kFloat, 1) {
    this->copy_transposed();
    this->keep_activated();  // each flow's scratch too
    if (setting.backward()) prepare_sums();
  }

 private:
  void prepare_sums() {
    constexpr std::int64_t kStored = SumGradients<Real>::kStored;
    const auto zeros = [&](at::IntArrayRef shape) { return at::zeros(shape, sums_.options()); };
    const std::int64_t energy = columns().energy_width, width = columns().head_width;
    scratch_ = this->matrix(columns().all);
    second_ = zeros({flows(), kStored});
    second_operand_ = this->rounds() ? zeros({flows(), kStored}) : second_;
    energy_operand_t_ = second_operand_.narrow(1, 0, 1).t();
    displacement_operand_t_ = second_operand_.narrow(1, 1, 3).t();
    activated_energy_ = activated_.narrow(1, 0, energy);
    activated_displacement_ = activated_.narrow(1, columns().displacement(), width);
    grad_energy_weight_ = zeros({1, energy});
    grad_displacement_weight_ = zeros({3, width});
    grad_first_bias_ = zeros({this->trained()});
    grad_out_bias_ = zeros({kStored});
    this->backward_arguments_.grad_second = data<Real>(second_);
    this->backward_arguments_.second_operand = this->rounds() ? data<Real>(second_operand_) : nullptr;
    this->set_bias_gradients(grad_first_bias_);
    this->set_gradient("energy_out_weight", grad_energy_weight_);
    this->set_gradient("displacement_out_weight", grad_displacement_weight_);
    this->set_gradient("energy_out_bias", grad_out_bias_.narrow(0, 0, 1));
    this->set_gradient("displacement_out_bias", grad_out_bias_.narrow(0, 1, 3));
  }

  // A flow is a few microseconds of work; fewer than a grain are not worth waking a thread.
  template <class Body>
  void over_flows(Body body) {
    at::parallel_for(0, flows(), grain(columns().all), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) body(f);
    });
  }

  void product(const at::Tensor& out, const at::Tensor& a, const at::Tensor& b) override {
    multiply_in_panels<Real>(out, a, b);
  }
  void round_operand(const at::Tensor& from, const at::Tensor& to) override { round_all<Real>(from, to); }
  void finish(const ForwardArguments<Real>& a) override {
    over_flows([&](std::int64_t f) { finish_flow(a, f); });
  }
  void differentiate(const BackwardArguments<Real>& a) override {
    Real* scratch = data<Real>(scratch_);
    over_flows([&](std::int64_t f) { differentiate_flow(a, f, scratch + f * columns().all); });
    sum_columns<Real>(sums_, grad_first_bias_);
    sum_columns<Real>(second_, grad_out_bias_);
    if (this->rounds()) round_all<Real>(sums_, sums_);  // where sums take the place of their operands
    // The small products take rounded values kept in fp32, which gives the same numbers as bf16 operands would.
    product(grad_energy_weight_, energy_operand_t_, activated_energy_);
    product(grad_displacement_weight_, displacement_operand_t_, activated_displacement_);
  }

  at::Tensor scratch_;                  // [flows, all]
  at::Tensor second_, second_operand_;  // [flows, 4]: gradients of the second layers' sums, exact and as operands
  at::Tensor grad_energy_weight_, grad_displacement_weight_, grad_first_bias_, grad_out_bias_;
  at::Tensor energy_operand_t_, displacement_operand_t_, activated_energy_, activated_displacement_;  // views
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuHeads<double>>(inputs, setting);
  return std::make_unique<CpuHeads<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads
