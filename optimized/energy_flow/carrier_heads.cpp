// energy_flow.carrier_heads, optimized on the CPU: the first layers of all heads in one product over all flows, then one
// pass that finishes each flow. Nothing is allocated and nothing read back after construction.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "kernels/common/cpu_clones.h"
#include "kernels/energy_flow/carrier_heads_math.h"
#include "src/energy_flow/carrier_heads.h"

namespace twinbench {
namespace {

using energy_flow::HeadsOptions;
using energy_flow::HeadsShape;
using energy_flow::Vector3;
namespace ops = energy_flow;

TWINBENCH_CPU_CLONES void round_row(const float* __restrict values, float* __restrict rounded, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) rounded[j] = kernels::round_to_bf16(values[j]);
}

TWINBENCH_CPU_CLONES void round_in_place(float* __restrict row, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) row[j] = kernels::round_to_bf16(row[j]);
}

TWINBENCH_CPU_CLONES void activate_row(const float* __restrict sums, const float* __restrict bias,
                                       float* __restrict activated, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) activated[j] = kernels::gelu(sums[j] + bias[j]);
}

TWINBENCH_CPU_CLONES void activation_gradient_row(float* __restrict sums, const float* __restrict bias,
                                                  const float* __restrict grad, std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) sums[j] = grad[j] * kernels::gelu_derivative(sums[j] + bias[j]);
}

TWINBENCH_CPU_CLONES void add_scaled_row(const float* __restrict row, float scale, float* __restrict sum,
                                         std::int64_t width) {
  for (std::int64_t j = 0; j < width; ++j) sum[j] += scale * row[j];
}

// Sixteen partial sums, added pairwise: a fixed order that vector registers follow.
TWINBENCH_CPU_CLONES float dot(const float* __restrict a, const float* __restrict b, std::int64_t width) {
  float partial[16] = {};
  std::int64_t j = 0;
  for (; j + 16 <= width; j += 16)
    for (int k = 0; k < 16; ++k) partial[k] += a[j + k] * b[j + k];
  for (int k = 0; j + k < width; ++k) partial[k] += a[j + k] * b[j + k];
  for (int half = 8; half > 0; half /= 2)
    for (int k = 0; k < half; ++k) partial[k] += partial[k + half];
  return partial[0];
}

float* data(const at::Tensor& tensor) { return static_cast<float*>(tensor.mutable_data_ptr()); }

float scheduled_scale(const HeadsOptions& o) {
  if (o.global_step < ops::kWarmUp) return static_cast<float>(o.scale);
  const double decays = std::floor(static_cast<double>(o.global_step - ops::kWarmUp) / ops::kInterval);
  return static_cast<float>(std::max(o.smallest_scale, o.scale * std::pow(ops::kDecay, decays)));
}

ops::HeadsRule rule_of(const HeadsOptions& o) {
  return {scheduled_scale(o), static_cast<float>(o.noise), o.noise_on_z ? 1.0f : 0.0f,
          static_cast<float>(o.gate ? o.gate_threshold : o.movement_threshold), o.most_spawned, o.gate ? 1 : 0,
          {o.seed, o.attempt, o.step}};
}

// Columns of the joined first layer: [energy | displacement | child, 1 | gate], the last two in gate mode only. What the
// loss can reach comes first, so that the backward products take the leading columns.
struct Columns {
  std::int64_t displacement, child, gate, all, trained;

  Columns(const HeadsShape& shape, bool gate_mode)
      : displacement(shape.energy_width),
        child(displacement + shape.head_width),
        gate(child + (gate_mode ? 1 : 0)),
        all(gate + (gate_mode ? shape.head_width : 0)),
        trained(gate) {}
};

class HeadsForward : public Runnable {
 public:
  HeadsForward(const Values& inputs, const Setting& setting)
      : shape_(energy_flow::checked_heads_shape(inputs, setting)),
        options_(energy_flow::checked_heads_options(setting)),
        rule_(rule_of(options_)),
        columns_(shape_, options_.gate),
        round_(setting.dtype == Dtype::kBf16),
        carried_(inputs["carried"].contiguous()),
        position_(inputs["position"].contiguous()),
        sample_key_(inputs["sample_key"].contiguous()),
        local_id_(inputs["local_id"].contiguous()) {
    pack(inputs);
    const auto make = [&](at::IntArrayRef shape) { return at::empty(shape, carried_.options()); };
    const std::int64_t flows = shape_.flows;
    operand_ = round_ ? at::empty_like(carried_) : carried_;
    sums_ = make({flows, columns_.all});
    activated_ = make({flows, columns_.all});
    energy_ = make({flows}), displacement_ = make({flows, 3}), delta_ = make({flows, 3}), raw_ = make({flows, 3});
    spawn_measure_ = make({flows}), child_energy_ = make({flows});
    spawn_count_ = at::empty({flows}, at::kInt);
  }

  void run() override {
    if (shape_.flows == 0) return;
    if (round_) round_carried();
    at::mm_out(sums_, operand_, first_weight_t_);
    at::parallel_for(0, shape_.flows, grain(), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) finish(f);
    });
  }

  Values outputs() override {
    return {{"energy", energy_},           {"displacement", displacement_},   {"delta", delta_},
            {"raw", raw_},                 {"spawn_measure", spawn_measure_}, {"spawn_count", spawn_count_},
            {"child_energy", child_energy_}};
  }

 protected:
  // A flow is a few microseconds of work; fewer than this many are not worth waking a thread.
  std::int64_t grain() const { return std::max<std::int64_t>(1, 8192 / columns_.all); }

  void pack(const Values& inputs) {
    const auto operand = [this](const at::Tensor& t) {
      return (round_ ? t.to(at::kBFloat16).to(at::kFloat) : t).contiguous();
    };
    std::vector<at::Tensor> weights = {inputs["energy_hidden_weight"], inputs["displacement_hidden_weight"]};
    std::vector<at::Tensor> biases = {inputs["energy_hidden_bias"], inputs["displacement_hidden_bias"]};
    if (options_.gate) {
      weights.insert(weights.end(), {inputs["child_weight"], inputs["gate_hidden_weight"]});
      biases.insert(biases.end(), {inputs["child_bias"], inputs["gate_hidden_bias"]});
    }
    first_weight_ = operand(at::cat(weights, 0));
    first_weight_t_ = first_weight_.t();
    first_bias_ = at::cat(biases, 0);
    energy_out_weight_ = operand(inputs["energy_out_weight"]);
    displacement_out_weight_ = operand(inputs["displacement_out_weight"]);
    gate_out_weight_ = operand(inputs["gate_out_weight"]);
    out_bias_ = at::cat({inputs["energy_out_bias"], inputs["displacement_out_bias"], inputs["gate_out_bias"]}).contiguous();
  }

  // The second layers' sums of a flow whose activations are ready.
  ops::HeadSums second_layers(std::int64_t f) const {
    const float* row = data(activated_) + f * columns_.all;
    const float* bias = data(out_bias_);
    const float* weight = data(displacement_out_weight_);
    const std::int64_t width = shape_.head_width;
    const float* hidden = row + columns_.displacement;
    ops::HeadSums sums{};
    sums.energy = dot(row, data(energy_out_weight_), shape_.energy_width) + bias[0];
    sums.displacement = {dot(hidden, weight, width) + bias[1], dot(hidden, weight + width, width) + bias[2],
                         dot(hidden, weight + 2 * width, width) + bias[3]};
    if (!options_.gate) return sums;
    sums.child = data(sums_)[f * columns_.all + columns_.child] + data(first_bias_)[columns_.child];
    sums.gate = dot(row + columns_.gate, data(gate_out_weight_), width) + bias[4];
    return sums;
  }

  HeadsShape shape_;
  HeadsOptions options_;
  ops::HeadsRule rule_;
  Columns columns_;
  bool round_;
  at::Tensor carried_, position_, operand_;        // operand_: carried_ as the product takes it
  at::Tensor first_weight_, first_weight_t_, first_bias_;
  at::Tensor energy_out_weight_, displacement_out_weight_, gate_out_weight_, out_bias_;
  at::Tensor sums_, activated_;                    // [flows, columns], before and after GELU
  at::Tensor spawn_count_;

 private:
  void round_carried() {
    const std::int64_t width = shape_.hidden;
    at::parallel_for(0, shape_.flows, std::max<std::int64_t>(1, 65536 / width), [&](std::int64_t begin, std::int64_t end) {
      round_row(data(carried_) + begin * width, data(operand_) + begin * width, (end - begin) * width);
    });
  }

  void finish(std::int64_t f) {
    float* activated = data(activated_) + f * columns_.all;
    activate_row(data(sums_) + f * columns_.all, data(first_bias_), activated, columns_.all);
    if (round_) round_in_place(activated, columns_.all);
    const ops::HeadSums sums = second_layers(f);
    const float* p = data(position_) + 3 * f;
    const auto key = [f](const at::Tensor& t) {
      return static_cast<std::uint32_t>(static_cast<const std::int64_t*>(t.const_data_ptr())[f]);
    };
    const ops::HeadResults result =
        ops::finish_heads(rule_, sums, {p[0], p[1], p[2]}, key(sample_key_), key(local_id_));
    store(displacement_, f, sums.displacement), store(delta_, f, result.delta), store(raw_, f, result.raw);
    data(energy_)[f] = result.energy;
    data(spawn_measure_)[f] = result.spawn_measure;
    data(child_energy_)[f] = result.child_energy;
    static_cast<std::int32_t*>(spawn_count_.mutable_data_ptr())[f] = result.spawn_count;
  }

  static void store(const at::Tensor& tensor, std::int64_t f, Vector3 v) {
    float* row = data(tensor) + 3 * f;
    row[0] = v.x, row[1] = v.y, row[2] = v.z;
  }

  at::Tensor sample_key_, local_id_;
  at::Tensor energy_, displacement_, delta_, raw_, spawn_measure_, child_energy_;
};

// Forward, then one pass per flow to the sums' gradients and four products for weights and state.
class HeadsBackward final : public HeadsForward {
 public:
  HeadsBackward(const Values& inputs, const Setting& setting) : HeadsForward(inputs, setting) {
    for (const char* name : {"grad_energy", "grad_displacement", "grad_delta", "grad_raw", "grad_child_energy"})
      given_.push_back(inputs[name].contiguous());
    const auto options = carried_.options();
    const std::int64_t flows = shape_.flows;
    grad_second_ = at::zeros({flows, kSecondSums}, options);
    second_operand_ = round_ ? at::zeros_like(grad_second_) : grad_second_;
    scratch_ = at::zeros({flows, columns_.all}, options);
    grad_carried_ = at::zeros_like(carried_);
    grad_first_weight_ = at::zeros({columns_.trained, shape_.hidden}, options);
    grad_first_bias_ = at::zeros({columns_.trained}, options);
    grad_energy_out_ = at::zeros({1, shape_.energy_width}, options);
    grad_displacement_out_ = at::zeros({3, shape_.head_width}, options);
    grad_out_bias_ = at::zeros({kSecondSums}, options);
    no_child_weight_ = at::zeros({1, shape_.hidden}, options);
    no_child_bias_ = at::zeros({1}, options);
    trained_sums_ = sums_.narrow(1, 0, columns_.trained);
    trained_sums_t_ = trained_sums_.t();
    trained_weight_ = first_weight_.narrow(0, 0, columns_.trained);
    grad_energy_sum_t_ = second_operand_.narrow(1, 0, 1).t();
    grad_displacement_sum_t_ = second_operand_.narrow(1, 1, 3).t();
    activated_energy_ = activated_.narrow(1, 0, shape_.energy_width);
    activated_displacement_ = activated_.narrow(1, columns_.displacement, shape_.head_width);
  }

  void run() override {
    HeadsForward::run();
    if (shape_.flows == 0) return;
    at::parallel_for(0, shape_.flows, grain(), [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t f = begin; f < end; ++f) differentiate(f);
    });
    sum_columns(data(sums_), columns_.all, data(grad_first_bias_), columns_.trained);
    sum_columns(data(grad_second_), kSecondSums, data(grad_out_bias_), kSecondSums);
    if (round_) round_sums();
    at::mm_out(grad_energy_out_, grad_energy_sum_t_, activated_energy_);
    at::mm_out(grad_displacement_out_, grad_displacement_sum_t_, activated_displacement_);
    at::mm_out(grad_first_weight_, trained_sums_t_, operand_);
    at::mm_out(grad_carried_, trained_sums_, trained_weight_);
  }

  Values outputs() override {
    const std::int64_t energy = shape_.energy_width, width = shape_.head_width;
    const auto weight = [&](std::int64_t from, std::int64_t count) { return grad_first_weight_.narrow(0, from, count); };
    const auto bias = [&](std::int64_t from, std::int64_t count) { return grad_first_bias_.narrow(0, from, count); };
    return {{"grad_carried", grad_carried_},
            {"grad_position", given_[kRaw]},  // raw = position + delta + noise
            {"grad_energy_hidden_weight", weight(0, energy)},
            {"grad_energy_hidden_bias", bias(0, energy)},
            {"grad_energy_out_weight", grad_energy_out_},
            {"grad_energy_out_bias", grad_out_bias_.narrow(0, 0, 1)},
            {"grad_displacement_hidden_weight", weight(energy, width)},
            {"grad_displacement_hidden_bias", bias(energy, width)},
            {"grad_displacement_out_weight", grad_displacement_out_},
            {"grad_displacement_out_bias", grad_out_bias_.narrow(0, 1, 3)},
            {"grad_child_weight", options_.gate ? weight(columns_.child, 1) : no_child_weight_},
            {"grad_child_bias", options_.gate ? bias(columns_.child, 1) : no_child_bias_}};
  }

 private:
  enum Given { kEnergy, kDisplacement, kDelta, kRaw, kChildEnergy };
  static constexpr std::int64_t kSecondSums = 4;  // energy, displacement x y z

  // Replaces the flow's sums by their gradients; keeps the second layers' in grad_second_.
  void differentiate(std::int64_t f) {
    const auto vector = [&](Given which) -> Vector3 {
      const float* row = data(given_[which]) + 3 * f;
      return {row[0], row[1], row[2]};
    };
    const std::int32_t spawned = static_cast<const std::int32_t*>(spawn_count_.const_data_ptr())[f];
    const ops::HeadSumGradients grad = ops::finish_heads_backward(
        rule_, second_layers(f), spawned,
        {data(given_[kEnergy])[f], vector(kDisplacement), vector(kDelta), vector(kRaw), data(given_[kChildEnergy])[f]});
    float* second = data(grad_second_) + kSecondSums * f;
    second[0] = grad.energy;
    second[1] = grad.displacement.x, second[2] = grad.displacement.y, second[3] = grad.displacement.z;
    const float* operand = data(second_operand_) + kSecondSums * f;
    if (round_) round_row(second, data(second_operand_) + kSecondSums * f, kSecondSums);
    float* sums = data(sums_) + f * columns_.all;
    float* first = data(scratch_) + f * columns_.all;
    const std::int64_t energy = shape_.energy_width, width = shape_.head_width;
    std::fill_n(first, columns_.child, 0.0f);
    add_scaled_row(data(energy_out_weight_), operand[0], first, energy);
    for (std::int64_t k = 0; k < 3; ++k)
      add_scaled_row(data(displacement_out_weight_) + k * width, operand[1 + k], first + energy, width);
    activation_gradient_row(sums, data(first_bias_), first, columns_.child);
    if (options_.gate) sums[columns_.child] = grad.child;
  }

  // The sums' gradients as the products take them; the biases' have been taken from the exact ones.
  void round_sums() {
    float* sums = data(sums_);
    at::parallel_for(0, shape_.flows, grain(), [&](std::int64_t begin, std::int64_t end) {
      round_in_place(sums + begin * columns_.all, (end - begin) * columns_.all);
    });
  }

  // Column sums in flow order, columns shared among the threads: the same bits for any number of threads.
  void sum_columns(const float* rows, std::int64_t stride, float* sums, std::int64_t columns) {
    at::parallel_for(0, columns, 128, [&](std::int64_t begin, std::int64_t end) {
      std::fill(sums + begin, sums + end, 0.0f);
      for (std::int64_t f = 0; f < shape_.flows; ++f)
        add_scaled_row(rows + f * stride + begin, 1.0f, sums + begin, end - begin);
    });
  }

  std::vector<at::Tensor> given_;
  at::Tensor grad_second_, second_operand_, scratch_;  // [flows, 4], the same as the products take it, [flows, columns]
  at::Tensor grad_carried_, grad_first_weight_, grad_first_bias_, grad_energy_out_, grad_displacement_out_, grad_out_bias_;
  at::Tensor no_child_weight_, no_child_bias_;  // zeros: movement mode has no child head
  at::Tensor trained_sums_, trained_sums_t_, trained_weight_, grad_energy_sum_t_, grad_displacement_sum_t_;
  at::Tensor activated_energy_, activated_displacement_;
};

}  // namespace

std::unique_ptr<Runnable> energy_flow_carrier_heads_optimized(const Values& inputs, const Setting& setting) {
  if (setting.values.pass == Pass::kBackward) return std::make_unique<HeadsBackward>(inputs, setting);
  return std::make_unique<HeadsForward>(inputs, setting);
}

}  // namespace twinbench
