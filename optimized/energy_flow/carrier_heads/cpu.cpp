// energy_flow.carrier_heads, optimized on the CPU: the first layers of all heads in one product over all flows, then one
// pass that finishes each flow. Nothing is allocated and nothing read back after construction.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "src/common/cpu_clones.h"
#include "kernels/energy_flow/carrier_heads/math.h"
#include "optimized/energy_flow/carrier_heads/pack.h"

namespace twinbench::energy_flow::carrier_heads {
namespace {

using energy_flow::carrier_heads::HeadsGradients;
using energy_flow::carrier_heads::HeadsResults;
using energy_flow::carrier_heads::PackedHeads;
namespace ops = energy_flow::carrier_heads;

template <class Real>
TWINBENCH_CPU_CLONES void round_row(const Real* __restrict values, Real* __restrict rounded, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) rounded[j] = kernels::round_to_bf16(values[j]);
}

template <class Real>
TWINBENCH_CPU_CLONES void round_in_place(Real* __restrict row, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) row[j] = kernels::round_to_bf16(row[j]);
}

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

template <class Real>
Real* data(const at::Tensor& tensor) {
  return static_cast<Real*>(tensor.mutable_data_ptr());
}

template <class Real>
ops::Vector3Of<Real> vector(const at::Tensor& tensor, std::int64_t f) {
  const Real* row = data<Real>(tensor) + 3 * f;
  return {row[0], row[1], row[2]};
}

template <class Real>
void store(const at::Tensor& tensor, std::int64_t f, ops::Vector3Of<Real> v) {
  Real* row = data<Real>(tensor) + 3 * f;
  row[0] = v.x, row[1] = v.y, row[2] = v.z;
}

// Real is float, or double for fp64 inputs.
template <class Real>
class HeadsForward : public Runnable {
 public:
  HeadsForward(const NamedTensors& inputs, const Setting& setting)
      : packed_(energy_flow::carrier_heads::pack_heads(inputs, setting, 1)),
        rule_(energy_flow::carrier_heads::heads_rule<Real>(packed_.options)),
        carried_(inputs["carried"].contiguous()),
        position_(inputs["position"].contiguous()),
        sample_key_(inputs["sample_key"].contiguous()),
        local_id_(inputs["local_id"].contiguous()),
        results_(HeadsResults::make(flows(), carried_.options())) {
    first_weight_t_ = packed_.first_weight.t();
    operand_ = packed_.round ? at::empty_like(carried_) : carried_;
    sums_ = at::empty({flows(), columns().all}, carried_.options());
    activated_ = at::empty_like(sums_);
  }

  void run() override {
    if (flows() == 0) return;
    if (packed_.round) round_carried();
    at::mm_out(sums_, operand_, first_weight_t_);
    at::parallel_for(0, flows(), grain(), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) finish(f);
    });
  }

  NamedTensors outputs() override { return results_.named(); }

 protected:
  std::int64_t flows() const { return packed_.shape.flows; }
  const ops::HeadColumns& columns() const { return packed_.columns; }
  // A flow is a few microseconds of work; fewer than this many are not worth waking a thread.
  std::int64_t grain() const { return std::max<std::int64_t>(1, 8192 / columns().all); }

  // The second layers' sums of a flow whose activations are ready.
  ops::HeadSumsOf<Real> second_layers(std::int64_t f) const {
    const Real* row = data<Real>(activated_) + f * columns().all;
    const Real* bias = data<Real>(packed_.out_bias);
    const Real* weight = data<Real>(packed_.displacement_out_weight);
    const std::int64_t width = columns().head_width;
    const Real* hidden = row + columns().displacement();
    ops::HeadSumsOf<Real> sums{};
    sums.energy = dot(row, data<Real>(packed_.energy_out_weight), columns().energy_width) + bias[0];
    sums.displacement = {dot(hidden, weight, width) + bias[1], dot(hidden, weight + width, width) + bias[2],
                         dot(hidden, weight + 2 * width, width) + bias[3]};
    if (!packed_.options.gate) return sums;
    const std::int64_t child = columns().child();
    sums.child = data<Real>(sums_)[f * columns().all + child] + data<Real>(packed_.first_bias)[child];
    sums.gate = dot(row + columns().gate(), data<Real>(packed_.gate_out_weight), width) + bias[4];
    return sums;
  }

  PackedHeads packed_;
  ops::HeadsRuleOf<Real> rule_;
  at::Tensor carried_, position_, sample_key_, local_id_;
  HeadsResults results_;
  at::Tensor operand_, first_weight_t_;  // carried_ and first_weight as the product takes them
  at::Tensor sums_, activated_;          // [flows, columns], before and after GELU

 private:
  void round_carried() {
    const std::int64_t width = packed_.shape.hidden;
    at::parallel_for(0, flows(), std::max<std::int64_t>(1, 65536 / width), [&](std::int64_t begin, std::int64_t end) {
      round_row(data<Real>(carried_) + begin * width, data<Real>(operand_) + begin * width, (end - begin) * width);
    });
  }

  void finish(std::int64_t f) {
    Real* activated = data<Real>(activated_) + f * columns().all;
    activate_row(data<Real>(sums_) + f * columns().all, data<Real>(packed_.first_bias), activated, columns().all);
    if (packed_.round) round_in_place(activated, columns().all);
    const auto sums = second_layers(f);
    const auto key = [f](const at::Tensor& t) {
      return static_cast<std::uint32_t>(static_cast<const std::int64_t*>(t.const_data_ptr())[f]);
    };
    const auto result = ops::finish_heads(rule_, sums, vector<Real>(position_, f), key(sample_key_), key(local_id_));
    store(results_.displacement, f, sums.displacement);
    store(results_.delta, f, result.delta);
    store(results_.raw, f, result.raw);
    data<Real>(results_.energy)[f] = result.energy;
    data<Real>(results_.spawn_measure)[f] = result.spawn_measure;
    data<Real>(results_.child_energy)[f] = result.child_energy;
    data<std::int32_t>(results_.spawn_count)[f] = result.spawn_count;
  }
};

// Forward, then one pass per flow to the sums' gradients and four products for weights and state.
template <class Real>
class HeadsBackward final : public HeadsForward<Real> {
  using Forward = HeadsForward<Real>;
  using Forward::activated_, Forward::columns, Forward::flows, Forward::grain, Forward::operand_, Forward::packed_,
      Forward::results_, Forward::rule_, Forward::sums_;

 public:
  HeadsBackward(const NamedTensors& inputs, const Setting& setting) : Forward(inputs, setting), gradients_(packed_, inputs) {
    scratch_ = at::zeros_like(sums_);
    trained_sums_ = sums_.narrow(1, 0, packed_.trained());
    trained_sums_t_ = trained_sums_.t();
    trained_weight_ = packed_.first_weight.narrow(0, 0, packed_.trained());
    activated_energy_ = activated_.narrow(1, 0, columns().energy_width);
    activated_displacement_ = activated_.narrow(1, columns().displacement(), columns().head_width);
  }

  void run() override {
    Forward::run();
    if (flows() == 0) return;
    at::parallel_for(0, flows(), grain(), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) differentiate(f);
    });
    sum_columns(sums_, gradients_.first_bias);
    sum_columns(gradients_.second, gradients_.out_bias);
    if (packed_.round) round_sums();
    at::mm_out(gradients_.energy_out_weight, gradients_.energy_operand_t, activated_energy_);
    at::mm_out(gradients_.displacement_out_weight, gradients_.displacement_operand_t, activated_displacement_);
    at::mm_out(gradients_.first_weight, trained_sums_t_, operand_);
    at::mm_out(gradients_.carried, trained_sums_, trained_weight_);
  }

  NamedTensors outputs() override { return gradients_.named(packed_); }

 private:
  static constexpr std::int64_t kSecondSums = HeadsGradients::kSecondSums;

  // Replaces the flow's sums by their gradients; keeps the second layers' in gradients_.second.
  void differentiate(std::int64_t f) {
    const auto grad = ops::finish_heads_backward(
        rule_, this->second_layers(f), data<std::int32_t>(results_.spawn_count)[f],
        {data<Real>(gradients_.energy)[f], vector<Real>(gradients_.displacement, f), vector<Real>(gradients_.delta, f),
         vector<Real>(gradients_.raw, f), data<Real>(gradients_.child_energy)[f]});
    Real* second = data<Real>(gradients_.second) + kSecondSums * f;
    second[0] = grad.energy;
    second[1] = grad.displacement.x, second[2] = grad.displacement.y, second[3] = grad.displacement.z;
    Real* operand = data<Real>(gradients_.second_operand) + kSecondSums * f;
    if (packed_.round) round_row(second, operand, kSecondSums);
    Real* sums = data<Real>(sums_) + f * columns().all;
    Real* first = data<Real>(scratch_) + f * columns().all;
    const std::int64_t energy = columns().energy_width, width = columns().head_width, child = columns().child();
    std::fill_n(first, child, Real(0));
    add_scaled_row(data<Real>(packed_.energy_out_weight), operand[0], first, energy);
    for (std::int64_t k = 0; k < 3; ++k)
      add_scaled_row(data<Real>(packed_.displacement_out_weight) + k * width, operand[1 + k], first + energy, width);
    activation_gradient_row(sums, data<Real>(packed_.first_bias), first, child);
    if (packed_.options.gate) sums[child] = grad.child;
  }

  // The sums' gradients as the products take them; the biases' have been taken from the exact ones.
  void round_sums() {
    Real* sums = data<Real>(sums_);
    at::parallel_for(0, flows(), grain(), [&](std::int64_t begin, std::int64_t end) {
      round_in_place(sums + begin * columns().all, (end - begin) * columns().all);
    });
  }

  // Sums of the leading columns in flow order, columns shared among the threads: the same bits for any number of threads.
  void sum_columns(const at::Tensor& rows, const at::Tensor& sums) {
    const std::int64_t stride = rows.size(1);
    const Real* from = data<Real>(rows);
    Real* to = data<Real>(sums);
    at::parallel_for(0, sums.numel(), 128, [&](std::int64_t begin, std::int64_t end) {
      std::fill(to + begin, to + end, Real(0));
      for (std::int64_t f = 0; f < flows(); ++f) add_scaled_row(from + f * stride + begin, Real(1), to + begin, end - begin);
    });
  }

  HeadsGradients gradients_;
  at::Tensor scratch_;  // [flows, columns]
  at::Tensor trained_sums_, trained_sums_t_, trained_weight_, activated_energy_, activated_displacement_;
};

template <class Real>
std::unique_ptr<Runnable> make(const NamedTensors& inputs, const Setting& setting) {
  if (setting.input_case.pass == Pass::kBackward) return std::make_unique<HeadsBackward<Real>>(inputs, setting);
  return std::make_unique<HeadsForward<Real>>(inputs, setting);
}

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return setting.dtype == Dtype::kFp64 ? make<double>(inputs, setting) : make<float>(inputs, setting);
}

}  // namespace twinbench::energy_flow::carrier_heads
