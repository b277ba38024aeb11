// The networks that flows go through, in plain ATen, [flows, ...] at once: one row for the baseline that takes flow by
// flow, all of them for the library's way. Parameters are looked up once.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

// Whose weights come rounded where it rounds (TapeBaseline).
enum class Operands { kAsTheyAre, kRounded, kRoundedOfLibrary };
inline Operands operands_of(const Setting& setting, bool library) {
  if (setting.rounds_as() != Dtype::kBf16) return Operands::kAsTheyAre;
  return library ? Operands::kRoundedOfLibrary : Operands::kRounded;
}

struct Linear {
  at::Tensor weight, bias;
  Operands operands = Operands::kAsTheyAre;
  at::Tensor operator()(const at::Tensor& x) const;
};
struct Norm {
  at::Tensor gain, shift;
  at::Tensor operator()(const at::Tensor& x) const;
};

// NaN becomes 0, infinities and large values 10: two operators.
at::Tensor guarded(const at::Tensor& values);

// Embeddings [rows, embedding] to surfaces [rows, cells]: ten operators.
class Mapper {
 public:
  Mapper(const NamedTensors& inputs, Operands operands);
  at::Tensor operator()(const at::Tensor& embedding) const;

 private:
  Linear first_, second_, last_;
  Norm first_norm_, second_norm_;
  at::Tensor scale_, offset_, cell_offset_;
};

// position [flows, 3], energy [flows, 1] to features: nine operators.
class Neuron {
 public:
  Neuron(const NamedTensors& inputs, Operands operands);
  at::Tensor operator()(const at::Tensor& position, const at::Tensor& energy) const;

 private:
  Linear coordinates_, first_, second_, last_;
  Norm first_norm_, second_norm_;
};

// In fp32 in every mode: gru_force_fp32 (0.3).
struct RecurrentLayer {
  Linear input, hidden;
  static std::vector<RecurrentLayer> all(const NamedTensors& inputs, std::int64_t layers);
};
// Gives `inputs`, whose weights are rounded, the recurrent layers' own ones.
void keep_recurrent_weights(NamedTensors& inputs, const NamedTensors& given, std::int64_t layers);

// What the heads say of flows.
struct Intent {
  at::Tensor energy, delta, gate, child;  // [flows, 1], [flows, 3], in gate mode [flows, 1] twice
};
class Heads {
 public:
  Heads(const NamedTensors& inputs, const Setting& setting, Operands operands);
  Intent operator()(const at::Tensor& carried) const;

 private:
  const double scale_;  // lambda at this optimizer step
  const bool gate_;
  Linear energy_hidden_, energy_out_, displacement_hidden_, displacement_out_, gate_hidden_, gate_out_, child_;
};

}  // namespace twinbench::energy_flow::flow_forward
