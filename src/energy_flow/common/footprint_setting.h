// The sizes of the flow model, as a component's setting gives them to the footprint model.
#pragma once

#include "src/energy_flow/common/footprint.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

inline ModelSizes model_sizes(const Setting& s) {
  return {.batch = s.size("batch"),
          .micro_batch = s.size("micro_batch"),
          .cells = s.size("height") * s.size("width"),
          .most_active = s.size("most_active"),
          .steps = s.size("steps"),
          .hidden = s.size("hidden"),
          .layers = s.size("layers"),
          .neuron_width = s.size("neuron_width"),
          .features = s.size("features"),
          .embedding = s.size("embedding"),
          .encoder_width = s.size("encoder_width"),
          .encoder_layers = s.size("encoder_layers"),
          .encoder_inner = s.size("encoder_inner"),
          .encoder_words = s.size("encoder_words"),
          .encoder_positions = s.size("encoder_positions"),
          .decoder_width = s.size("decoder_width"),
          .decoder_layers = s.size("decoder_layers"),
          .decoder_inner = s.size("decoder_inner"),
          .decoder_words = s.size("decoder_words"),
          .keep_state_every = static_cast<std::int64_t>(s.option("keep_state_every")),
          .gate = s.on("gate_parameters"),
          .train_mapper = s.on("train_mapper"),
          .text_bridge = s.on("text_bridge"),
          .half_hidden = s.on("hidden_dtype")};
}

}  // namespace twinbench::energy_flow
