// The text decoder's parameters (C20), as the specifications of whoever decodes surfaces list them.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/energy_flow/common/vocabulary.h"
#include "src/spec_parts.h"

namespace twinbench::energy_flow {

inline void add_decoder(Signature& s) {
  const auto given = [&s](const InputSpec& input) { s.inputs.push_back(input.without_gradient()); };
  const auto layered = [&given](const InputSpec& input) { given(input.one_per("layers", 16)); };
  // Normal weights, whatever the case's data are, of deviation spread / sqrt(fan).
  const auto scaled = [](std::uint32_t number, const std::string& fan, double spread = 1) {
    Draw draw = always("normal", number, spread);
    draw.fan = fan;
    return draw;
  };
  given(weight("adapter_weight_1", "middle, cells", fan_in(2, "cells")));
  given(bias("adapter_bias_1", "middle", fan_in(3, "cells")));
  given(gain("adapter_gain_1", "middle", normal(4, 0.1)).shifted(1));
  given(bias("adapter_shift_1", "middle", normal(5, 0.1)));
  given(weight("adapter_weight_2", "model, middle", fan_in(6, "middle")));
  given(bias("adapter_bias_2", "model", fan_in(7, "middle")));
  given(gain("adapter_gain_2", "model", normal(8, 0.1)).shifted(1));
  given(bias("adapter_shift_2", "model", normal(9, 0.1)));
  given(weight("embedding", "vocabulary, model", normal(10, 1)));
  // Of a trained decoder that is sure of what it says: logits of a few units, far apart.
  given(gain("final_gain", "model", normal(11, 0.4)).shifted(5));
  layered(gain("self_gain", "model", normal(32, 0.1)).shifted(1));
  layered(weight("self_qkv", "3 * model, model", scaled(33, "model", 1.2)));
  layered(weight("self_out", "model, model", scaled(34, "model", 2.5)));
  // Its queries and keys are left out: over one key every softmax is 1, and none of them shows.
  layered(weight("cross_value", "model, model", scaled(35, "model")));
  layered(weight("cross_out", "model, model", scaled(36, "model", 4)));
  layered(gain("ff_gain", "model", normal(37, 0.1)).shifted(1));
  layered(weight("ff_in", "ff, model", scaled(38, "model")));
  layered(weight("ff_out", "model, ff", scaled(39, "ff", 6)));
}

inline OptionSpec ending_option() {
  return of_inputs(choice_option("ending", {"sometimes", "at_once", "never"}, "sometimes",
                                 "when samples end: by chance, with their first token, or not at all"));
}

// adapter_weight_1 [middle, cells], as drawn for surfaces of standard deviation 1: so that those of a few short lives,
// nearly alike and near 0, are told apart, and another sample's text is another.
inline void hear_faint_surfaces(const at::Tensor& adapter_weight_1) { adapter_weight_1.mul_(100); }

// embedding [vocabulary, model], as drawn: what the option `ending` says.
inline void make_texts_end(const at::Tensor& embedding, const Setting& setting) {
  const at::Tensor end = embedding.select(0, kEndToken);
  const double ending = setting.option("ending");
  if (ending == 0) end.mul_(2);  // a longer vector is more often the nearest
  if (ending == 2) end.zero_();  // 0, where the largest of many logits is above
  if (ending == 1) {             // along an axis that the first position alone has
    embedding.select(1, 0).zero_();
    embedding.select(0, kPadToken).select(0, 0).fill_(30);
    end.select(0, 0).fill_(90);
  }
}

}  // namespace twinbench::energy_flow
