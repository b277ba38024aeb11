// From a configuration's fields to the model's sizes.
#include "scenarios/energy_flow/footprint.h"

namespace twinbench::energy_flow {

ModelSizes sizes_of(const Configuration& c) {
  return {.batch = c.count("batch_size"),
          .micro_batch = c.count("micro_batch") == 0 ? c.count("batch_size") : c.count("micro_batch"),
          .cells = c.cells(),
          .most_active = c.count("max_active_flows"),
          .steps = c.most_steps(),
          .hidden = c.count("carrier_hidden"),
          .layers = c.count("carrier_layers"),
          .neuron_width = c.count("neuron_hidden"),
          .features = c.count("neuron_output"),
          .embedding = c.count("embedding_width"),
          .encoder_width = c.count("encoder_width"),
          .encoder_layers = c.count("encoder_layers"),
          .encoder_inner = c.count("encoder_inner"),
          .encoder_words = c.count("encoder_words"),
          .encoder_positions = c.count("encoder_positions"),
          .decoder_width = c.count("decoder_width"),
          .decoder_layers = c.count("decoder_layers"),
          .decoder_inner = c.count("decoder_inner"),
          .decoder_words = c.count("decoder_words"),
          .keep_state_every = c.count("keep_state_every"),
          .gate = c.word("spawn_mode") == "gate",
          .train_mapper = c.on("train_mapper"),
          .text_bridge = c.on("text_bridge"),
          .half_hidden = c.word("hidden_dtype") == "bf16"};
}

std::vector<Parameters> parameters_of(const Configuration& configuration) {
  const ModelSizes sizes = sizes_of(configuration);
  const auto counts = parameters_of(sizes);
  std::vector<Parameters> parts;
  for (std::size_t part = 0; part < kParts; ++part)
    if (counts[part] > 0) parts.push_back({kPartNames[part], counts[part], is_trained(sizes, part)});
  return parts;
}

std::optional<Split> split_that_fits(const Configuration& configuration, double bytes) {
  ModelSizes split = sizes_of(configuration);
  for (split.micro_batch = split.batch; split.micro_batch > 0; --split.micro_batch) {
    if (split.batch % split.micro_batch != 0) continue;
    for (std::int64_t every = split.steps + 1; every > 0; --every) {
      split.keep_state_every = every > split.steps ? 0 : every;
      const double needed = footprint_of(split).optimized();
      if (needed <= bytes) return Split{split.micro_batch, split.keep_state_every, needed};
    }
  }
  return std::nullopt;
}

}  // namespace twinbench::energy_flow
