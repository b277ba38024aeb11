// What the training step's baseline rounds in modes that round, and when: weights that no window moves once, the flows'
// once a window.
#pragma once

#include <string>

#include "src/inputs.h"
#include "src/rounding.h"

namespace twinbench::energy_flow::train_step {

// In bf16 mode the weights that no window moves are rounded once, for all windows; but for the decoder's, which rounds
// them itself.
inline NamedTensors with_operands(NamedTensors inputs, const Setting& s) {
  for (const InputSpec& input : inputs_of(*s.signature, s))
    if (input.role == Role::kWeight && !input.name.starts_with("decoder_"))
      inputs.set(input.name, rounded(inputs[input.name], s.rounds_as()));
  return inputs;
}
// Nothing is left to round for whoever takes the flows' inputs.
inline Signature without_weights(Signature signature) {
  for (InputSpec& input : signature.inputs)
    if (input.role == Role::kWeight) input.role = Role::kBias;
  return signature;
}
// Of the flows: the recurrent layers stay fp32 (0.3). The encoder rounds its own.
inline bool is_operand(const std::string& parameter) {
  return parameter.find("weight") != std::string::npos && !parameter.starts_with("weight_") &&
         !parameter.starts_with("encoder_");
}

}  // namespace twinbench::energy_flow::train_step
