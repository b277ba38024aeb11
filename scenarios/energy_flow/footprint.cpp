// Counts of flows, parameters and bytes.
#include "scenarios/energy_flow/footprint.h"

#include <algorithm>

namespace twinbench::energy_flow {
namespace {

using Count = std::int64_t;

constexpr Count kDisplacementWidth = 64;  // of the displacement head's and the gate's inner layer
constexpr Count kFloat = 4, kHalf = 2;    // bytes

Count linear(Count in, Count out) { return out * in + out; }
Count layer_norm(Count width) { return 2 * width; }

Count mapper(Count embedding, Count cells) {
  const Count inner = std::max(embedding / 2, 2 * cells);
  // Two scalars and a position's offset a cell come after the last layer.
  return linear(embedding, inner) + layer_norm(inner) + linear(inner, 2 * cells) + layer_norm(2 * cells) +
         linear(2 * cells, cells) + cells + 2;
}

Count collector(Count embedding, Count cells) {
  const Count inner = std::max(embedding / 2, 2 * cells);
  return cells + linear(cells, 2 * cells) + layer_norm(2 * cells) + linear(2 * cells, inner) + layer_norm(inner) +
         linear(inner, embedding);
}

Count neuron(Count hidden, Count outputs) {
  return linear(3, 3) + linear(4, hidden) + layer_norm(hidden) + linear(hidden, hidden) + layer_norm(hidden) +
         linear(hidden, outputs);
}

Count carrier(Count inputs, Count hidden, Count layers) {
  const auto gates = [&](Count in) { return linear(in, 3 * hidden) + linear(hidden, 3 * hidden); };
  return gates(inputs) + (layers - 1) * gates(hidden);
}

Count heads(Count hidden, bool gate) {
  const Count energy = linear(hidden, hidden / 2) + linear(hidden / 2, 1);
  const Count displacement = linear(hidden, kDisplacementWidth) + linear(kDisplacementWidth, 3);
  const Count spawn = linear(hidden, kDisplacementWidth) + linear(kDisplacementWidth, 1) + linear(hidden, 1);
  return energy + displacement + (gate ? spawn : 0);
}

Count encoder(Count width, Count layers, Count inner, Count words, Count positions, Count cells) {
  const Count layer = linear(width, 3 * width) + linear(width, width) + linear(width, inner) + linear(inner, width) +
                      2 * layer_norm(width);
  return words * width + positions * width + layers * layer + linear(width, width) + layer_norm(width) +
         linear(width, cells);
}

Count adapter(Count cells, Count width) {
  return linear(cells, cells / 2) + layer_norm(cells / 2) + linear(cells / 2, width) + layer_norm(width);
}

// Two attentions and two linear layers without biases, three norms of one gain each; the embedding is used twice.
Count decoder(Count width, Count layers, Count inner, Count words) {
  return words * width + layers * (2 * 4 * width * width + 2 * width * inner + 3 * width) + width;
}

Count rows_at_once(const Configuration& c) {
  return c.count("micro_batch") == 0 ? c.count("batch_size") : c.count("micro_batch");
}

double tape(const Configuration& c, Count flows, Count saved) {
  const auto of = [&](Count steps, Count numbers) {
    return static_cast<double>(flows) * static_cast<double>(steps * numbers * kFloat);
  };
  const Count steps = c.most_steps(), every = c.count("keep_state_every");
  if (every == 0) return of(steps, saved);
  const Count state = 4 + c.count("carrier_layers") * c.count("carrier_hidden");
  return of((steps + every - 1) / every, state) + of(std::min(every, steps), saved);
}

}  // namespace

Population population_of(const Configuration& c) {
  const Count rows = c.count("batch_size"), cells = c.cells();
  Population population;
  population.requested = rows * cells;
  population.quota = std::max<Count>(1, c.count("max_active_flows") / rows);
  population.admitted = rows * std::min(cells, population.quota);
  population.dropped = population.requested - population.admitted;
  return population;
}

std::vector<Parameters> parameters_of(const Configuration& c) {
  const Count cells = c.cells(), embedding = c.count("embedding_width"), hidden = c.count("carrier_hidden");
  std::vector<Parameters> parts = {
      {"mapper", mapper(embedding, cells), c.on("train_mapper")},
      {"collector", collector(embedding, cells), false},  // of the evaluation: no loss reaches it
      {"neuron", neuron(c.count("neuron_hidden"), c.count("neuron_output")), true},
      {"carrier", carrier(c.count("neuron_output") + 1, hidden, c.count("carrier_layers")), true},
      {"heads", heads(hidden, c.word("spawn_mode") == "gate"), true}};
  if (!c.on("text_bridge")) return parts;
  parts.push_back({"text encoder",
                   encoder(c.count("encoder_width"), c.count("encoder_layers"), c.count("encoder_inner"),
                           c.count("encoder_words"), c.count("encoder_positions"), cells),
                   true});
  // Text is compared by its words, which have no gradient.
  parts.push_back({"text adapter", adapter(cells, c.count("decoder_width")), false});
  parts.push_back(
      {"text decoder",
       decoder(c.count("decoder_width"), c.count("decoder_layers"), c.count("decoder_inner"), c.count("decoder_words")),
       false});
  return parts;
}

Count saved_by_baseline(const Configuration& c) {
  const Count hidden = c.count("carrier_hidden"), layers = c.count("carrier_layers");
  const Count inner = c.count("neuron_hidden"), outputs = c.count("neuron_output"), inputs = outputs + 1;
  // Position, energy and the neuron's input; two layers of three operators; the features, joined, guarded and taken in.
  const Count of_neuron = 4 + 4 + 6 * inner + outputs + 2 * inputs + inputs;
  const Count of_carrier = (layers - 1) * hidden + 5 * layers * hidden + hidden + layers * hidden;
  const Count of_heads = hidden + 1 + 2 * kDisplacementWidth + 6;
  return of_neuron + of_carrier + of_heads;
}

Count saved_by_optimized(const Configuration& c) {
  const Count hidden = c.count("carrier_hidden");
  // Position and energy; states, gates and the candidate's product; the heads' inner layers before their GELU; results.
  return 4 + 5 * c.count("carrier_layers") * hidden + hidden / 2 + kDisplacementWidth + 4;
}

Footprint footprint_of(const Configuration& c) {
  Footprint bytes;
  double all = 0, trained = 0;
  for (const auto& part : parameters_of(c)) {
    all += static_cast<double>(part.count);
    if (part.trained) trained += static_cast<double>(part.count);
  }
  bytes.weights = kFloat * all;
  bytes.gradients = kFloat * trained;
  bytes.moments = 2 * kFloat * trained;
  const Count number = c.word("hidden_dtype") == "bf16" ? kHalf : kFloat;
  // A slot: position, energy, hidden state, sample, number in it, age, status, distance, cell, forward pass.
  const Count slot = 12 + 4 + c.count("carrier_layers") * c.count("carrier_hidden") * number + 3 * 4 + 1 + 3 * 4;
  bytes.storage = static_cast<double>(c.count("max_active_flows")) * static_cast<double>(slot);
  // Embeddings of two batches, inputs and targets.
  bytes.batches = 2.0 * 2 * kFloat * static_cast<double>(c.count("batch_size") * c.count("embedding_width"));
  const Count flows = population_of(c).admitted / c.count("batch_size") * rows_at_once(c);
  Configuration everything = c;
  everything.fields["keep_state_every"] = 0;
  bytes.baseline_tape = tape(everything, flows, saved_by_baseline(c));
  bytes.optimized_tape = tape(c, flows, saved_by_optimized(c));
  return bytes;
}

std::optional<Split> split_that_fits(const Configuration& c, double bytes) {
  const Count batch = c.count("batch_size"), steps = c.most_steps();
  Configuration split = c;
  for (Count rows = batch; rows > 0; --rows) {
    if (batch % rows != 0) continue;
    split.fields["micro_batch"] = rows;
    for (Count every = steps + 1; every > 0; --every) {
      split.fields["keep_state_every"] = every > steps ? 0 : every;
      const double needed = footprint_of(split).optimized();
      if (needed <= bytes) return Split{rows, split.count("keep_state_every"), needed};
    }
  }
  return std::nullopt;
}

}  // namespace twinbench::energy_flow
