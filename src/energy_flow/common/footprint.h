// How many flows a configuration of the flow model asks for and gets, its parameters part by part, and the bytes of a
// training step: arithmetic, nothing is allocated (C14, C34).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "src/common/error.h"

namespace twinbench::energy_flow {

// What of a configuration decides how much it holds.
struct ModelSizes {
  std::int64_t batch = 1, micro_batch = 1;  // rows; micro_batch: forwarded at once, a divisor of batch
  std::int64_t cells = 1;                   // of a surface
  std::int64_t most_active = 1;             // slots of the flow storage, over all rows of a batch
  std::int64_t steps = 0;                   // K, where nothing stops earlier
  std::int64_t hidden = 1, layers = 1, neuron_width = 1, features = 1, embedding = 1;
  std::int64_t encoder_width = 1, encoder_layers = 1, encoder_inner = 1, encoder_words = 1, encoder_positions = 1;
  std::int64_t decoder_width = 1, decoder_layers = 1, decoder_inner = 1, decoder_words = 1;
  std::int64_t keep_state_every = 0;  // steps between kept states, which the others are recomputed from; 0: all is kept
  bool gate = false, train_mapper = false, text_bridge = true, half_hidden = false;
};

// Of one batch, before anything moves.
struct Population {
  std::int64_t requested = 0;  // a flow for each row and cell
  std::int64_t quota = 0;      // of one row
  std::int64_t admitted = 0, dropped = 0;
};

inline Population population_of(const ModelSizes& m) {
  Population population;
  population.requested = m.batch * m.cells;
  population.quota = std::max<std::int64_t>(1, m.most_active / m.batch);
  population.admitted = m.batch * std::min(m.cells, population.quota);
  population.dropped = population.requested - population.admitted;
  return population;
}

enum Part : std::size_t {
  kMapperPart,
  kCollectorPart,
  kNeuronPart,
  kCarrierPart,
  kHeadsPart,
  kEncoderPart,
  kAdapterPart,
  kDecoderPart,
  kParts
};
inline constexpr std::array<const char*, kParts> kPartNames = {
    "mapper", "collector", "neuron", "carrier", "heads", "text encoder", "text adapter", "text decoder"};

namespace footprint {

inline constexpr std::int64_t kHeadWidth = 64;        // of the displacement head's and the gate's inner layer
inline constexpr std::int64_t kFloat = 4, kHalf = 2;  // bytes

inline std::int64_t linear(std::int64_t in, std::int64_t out) { return out * in + out; }
inline std::int64_t layer_norm(std::int64_t width) { return 2 * width; }

inline std::int64_t mapper(std::int64_t embedding, std::int64_t cells) {
  const std::int64_t inner = std::max(embedding / 2, 2 * cells);
  // Two scalars and a position's offset a cell come after the last layer.
  return linear(embedding, inner) + layer_norm(inner) + linear(inner, 2 * cells) + layer_norm(2 * cells) +
         linear(2 * cells, cells) + cells + 2;
}

inline std::int64_t collector(std::int64_t embedding, std::int64_t cells) {
  const std::int64_t inner = std::max(embedding / 2, 2 * cells);
  return cells + linear(cells, 2 * cells) + layer_norm(2 * cells) + linear(2 * cells, inner) + layer_norm(inner) +
         linear(inner, embedding);
}

inline std::int64_t carrier(const ModelSizes& m) {
  const auto gates = [&](std::int64_t in) { return linear(in, 3 * m.hidden) + linear(m.hidden, 3 * m.hidden); };
  return gates(m.features + 1) + (m.layers - 1) * gates(m.hidden);
}

inline std::int64_t heads(std::int64_t hidden, bool gate) {
  const std::int64_t energy = linear(hidden, hidden / 2) + linear(hidden / 2, 1);
  const std::int64_t displacement = linear(hidden, kHeadWidth) + linear(kHeadWidth, 3);
  const std::int64_t spawn = linear(hidden, kHeadWidth) + linear(kHeadWidth, 1) + linear(hidden, 1);
  return energy + displacement + (gate ? spawn : 0);
}

inline std::int64_t encoder(const ModelSizes& m) {
  const std::int64_t width = m.encoder_width, inner = m.encoder_inner;
  const std::int64_t layer = linear(width, 3 * width) + linear(width, width) + linear(width, inner) +
                             linear(inner, width) + 2 * layer_norm(width);
  return (m.encoder_words + m.encoder_positions) * width + m.encoder_layers * layer + linear(width, width) +
         layer_norm(width) + linear(width, m.cells);
}

inline std::int64_t adapter(std::int64_t cells, std::int64_t width) {
  return linear(cells, cells / 2) + layer_norm(cells / 2) + linear(cells / 2, width) + layer_norm(width);
}

// Two attentions and two linear layers without biases, three norms of one gain each; the embedding is used twice.
inline std::int64_t decoder(const ModelSizes& m) {
  const std::int64_t width = m.decoder_width;
  return m.decoder_words * width +
         m.decoder_layers * (2 * 4 * width * width + 2 * width * m.decoder_inner + 3 * width) + width;
}

}  // namespace footprint

// Numbers in each part; none of the text's where there is no text bridge.
inline std::array<std::int64_t, kParts> parameters_of(const ModelSizes& m) {
  using namespace footprint;
  const std::int64_t neuron = linear(3, 3) + linear(4, m.neuron_width) + linear(m.neuron_width, m.neuron_width) +
                              2 * layer_norm(m.neuron_width) + linear(m.neuron_width, m.features);
  std::array<std::int64_t, kParts> of = {mapper(m.embedding, m.cells), collector(m.embedding, m.cells), neuron,
                                         carrier(m), heads(m.hidden, m.gate)};
  if (m.text_bridge)
    of[kEncoderPart] = encoder(m), of[kAdapterPart] = adapter(m.cells, m.decoder_width), of[kDecoderPart] = decoder(m);
  return of;
}

// No loss reaches the collector; text is compared by its words, which have no gradient.
inline bool is_trained(const ModelSizes& m, std::size_t part) {
  return part == kMapperPart
             ? m.train_mapper
             : part == kNeuronPart || part == kCarrierPart || part == kHeadsPart || part == kEncoderPart;
}

// Floats that a flow's step saves for the backward pass: every operator's output.
inline std::int64_t saved_by_baseline(const ModelSizes& m) {
  const std::int64_t inputs = m.features + 1, states = m.layers * m.hidden;
  // Position, energy and the neuron's input; two layers of three operators; the features, joined, guarded and taken in.
  const std::int64_t of_neuron = 4 + 4 + 6 * m.neuron_width + m.features + 2 * inputs + inputs;
  const std::int64_t of_carrier = (states - m.hidden) + 5 * states + m.hidden + states;
  const std::int64_t of_heads = 2 * (m.hidden / 2) + 1 + 2 * footprint::kHeadWidth + 6;
  return of_neuron + of_carrier + of_heads;
}

// What cannot be recomputed cheaply: position and energy; states, gates and the candidate's product; the heads' inner
// layers before their GELU; results.
inline std::int64_t saved_by_optimized(const ModelSizes& m) {
  return 4 + 5 * m.layers * m.hidden + m.hidden / 2 + footprint::kHeadWidth + 4;
}

// Bytes of a number of a hidden state between two steps.
inline std::int64_t state_bytes(const ModelSizes& m) { return m.half_hidden ? footprint::kHalf : footprint::kFloat; }

// Bytes of what is saved of a flow's step, whose states may be stored in two bytes; and of its state alone, which steps
// can be recomputed from.
inline std::int64_t saved_bytes(const ModelSizes& m) {
  return footprint::kFloat * saved_by_optimized(m) - (footprint::kFloat - state_bytes(m)) * m.layers * m.hidden;
}
inline std::int64_t saved_state_bytes(const ModelSizes& m) {
  return footprint::kFloat * 4 + state_bytes(m) * m.layers * m.hidden;
}

// Multiplications and additions of one flow-step forward.
inline std::int64_t operations_of_flow_step(const ModelSizes& m) {
  const auto of = parameters_of(m);
  return 2 * (of[kNeuronPart] + of[kCarrierPart] + of[kHeadsPart]);
}

// How many flows start each step where no row stops early and none spawns.
inline std::vector<std::int64_t> constant_population(const ModelSizes& m) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(m.steps),
                                   population_of(m).admitted / m.batch * m.micro_batch);
}

inline void check_population(std::span<const std::int64_t> active) {
  for (const std::int64_t flows : active)
    if (flows < 0)
      throw Error(ErrorKind::kOutOfRange, "active", std::to_string(flows), "give numbers of flows, 0 or more");
}

// Bytes of the tape of flows of which active[t] start step t: all that is saved of every step; or the states of every
// so many steps, and all of the largest segment between two of them. saved, state: bytes of a flow's.
inline double tape_bytes(std::span<const std::int64_t> active, std::int64_t saved, std::int64_t state,
                         std::int64_t every) {
  if (every == 0) every = std::max<std::int64_t>(1, static_cast<std::int64_t>(active.size())), state = 0;
  double kept = 0, largest = 0;
  const auto all = static_cast<std::int64_t>(active.size());
  for (std::int64_t first = 0; first < all; first += every) {
    const auto begin = active.begin() + first, end = active.begin() + std::min(all, first + every);
    kept += static_cast<double>(*begin) * static_cast<double>(state);
    largest = std::max(largest, std::accumulate(begin, end, 0.0) * static_cast<double>(saved));
  }
  return kept + largest;
}

// Bytes, beside the workspaces of products. Tapes: of one micro-batch.
struct Footprint {
  double weights = 0, gradients = 0, moments = 0, storage = 0, batches = 0;
  double baseline_tape = 0, optimized_tape = 0;  // the latter with states kept every so many steps, where asked for

  double without_tape() const { return weights + gradients + moments + storage + batches; }
  double baseline() const { return without_tape() + baseline_tape; }
  double optimized() const { return without_tape() + optimized_tape; }
};

inline Footprint footprint_of(const ModelSizes& m, std::span<const std::int64_t> active) {
  using footprint::kFloat;
  const auto parameters = parameters_of(m);
  Footprint bytes;
  for (std::size_t part = 0; part < kParts; ++part) {
    bytes.weights += static_cast<double>(kFloat * parameters[part]);
    if (is_trained(m, part)) bytes.gradients += static_cast<double>(kFloat * parameters[part]);
  }
  bytes.moments = 2 * bytes.gradients;
  // A slot: position, energy, hidden state, sample, number in it, age, status, distance, cell, forward pass.
  const std::int64_t slot = 12 + 4 + m.layers * m.hidden * state_bytes(m) + 3 * 4 + 1 + 3 * 4;
  bytes.storage = static_cast<double>(m.most_active) * static_cast<double>(slot);
  // Embeddings of two batches, inputs and targets.
  bytes.batches = 2.0 * 2 * kFloat * static_cast<double>(m.batch * m.embedding);
  bytes.baseline_tape = tape_bytes(active, kFloat * saved_by_baseline(m), 0, 0);
  bytes.optimized_tape = tape_bytes(active, saved_bytes(m), saved_state_bytes(m), m.keep_state_every);
  return bytes;
}
inline Footprint footprint_of(const ModelSizes& m) { return footprint_of(m, constant_population(m)); }

}  // namespace twinbench::energy_flow
