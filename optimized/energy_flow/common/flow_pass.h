// The flows of a batch there and back on the CPU (C16, C17), in two halves: tiles of flows go forward in cache, which
// leaves their states on a tape, and back, computing again what lies between them; of whole steps too, where states are
// kept every so many steps alone (C31). Nothing is allocated and nothing read back after the first pass. Threads share
// the samples, or the tiles of a sample that is alone; sums of gradients do not depend on their number.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "optimized/common/rows.h"
#include "optimized/energy_flow/common/flow_places.h"
#include "optimized/energy_flow/common/flow_tape.h"
#include "optimized/energy_flow/common/pack_sources.h"
#include "optimized/energy_flow/common/tile_gradients.h"

namespace twinbench::energy_flow::flow_forward {

class FlowPass {
 public:
  // inputs: the networks' parameters by name.
  FlowPass(const NamedTensors& inputs, const Setting& setting, FlowPlaces places);
  ~FlowPass();

  // The first `rows` samples.
  void forward(std::int64_t rows);
  // From grad_surface as it lies then. The tape is given up.
  void backward(std::int64_t rows);

  // Parameters that are views of `arena` may change in place: refresh() then takes them as they are.
  void train(const NamedTensors& inputs, const Setting& setting, const at::Tensor& arena);
  void refresh() { flow_forward::refresh(sources_, arena_); }
  void set_exploration(float scale, std::uint32_t attempt) { networks_.set_exploration(scale, attempt); }

  std::int64_t tape_bytes() const;  // held
  // Sums of the parameters' gradients of the last way back, as TileGradients lays them out.
  const at::Tensor& sums() const { return all_sums_; }
  const GradientLayout& layout() const { return gradients_.layout(); }
  const Parameters& parameters() const { return networks_.parameters(); }

 private:
  struct Sample;

  template <class Body>
  void over_parts(double products, const Body& body) const;
  void forward_sample(std::int64_t b, std::int64_t piece);
  void backward_sample(std::int64_t b, std::int64_t piece);
  void begin_step(Sample& sample, std::int32_t t) const;
  void repeat(Sample& sample, std::size_t segment, std::uint32_t key, std::int64_t piece);
  void walk_back(Sample& sample, std::int32_t& created, std::int64_t piece);
  void walk_back(const Sample& sample, const TileStep& step, std::int64_t share);
  void return_child(const Sample& sample, std::int64_t child) const;
  Pieces pieces_of(std::int64_t rows) const;
  std::uint32_t key_of(std::int64_t b) const;
  std::int64_t most_held(std::int64_t every, std::int64_t steps) const;
  void tell(TapeColumn column, std::int64_t value) const;

  const FlowPlaces places_;
  const bool taped_, tells_margin_;
  const std::int64_t samples_;
  const std::int64_t states_;  // floats of a flow's hidden states
  const Rules rules_;
  TileNetworks networks_;
  const TileGradients gradients_;
  const std::int64_t parts_;       // of a sample
  const double products_of_tile_;  // multiplications of its way through the networks
  std::vector<std::unique_ptr<Sample>> flows_;
  std::int64_t every_ = 0;                // steps between kept states; 0: all of a step's are kept
  at::Tensor scratch_, sums_, all_sums_;  // [pieces * parts, floats] twice, [floats]
  std::vector<PackSource> sources_;
  at::Tensor arena_;
};

}  // namespace twinbench::energy_flow::flow_forward
