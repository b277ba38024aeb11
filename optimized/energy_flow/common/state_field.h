// Hidden states between two steps, [tiles][channels][kLanes]: floats, or half as many bytes in bf16 (hidden_dtype).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace twinbench::energy_flow::flow_forward {

class StateField {
 public:
  // Zeros. bf16: what is put in is rounded already, and comes out as it was.
  StateField(std::int64_t tiles, std::int64_t channels, bool bf16);

  static std::int64_t tile_bytes(std::int64_t channels, bool bf16);

  // A tile's values as floats, where they lie or, of bf16, in `room`; what was changed there is put back.
  float* open(std::int64_t tile, float* room) const;
  void close(std::int64_t tile, const float* opened) const;
  // A tile as it is stored, on a tape: at `to`, from `from`.
  void keep(std::int64_t tile, std::byte* to) const;
  void take(std::int64_t tile, const std::byte* from) const;
  // One of bf16 that was kept, as floats.
  static void widen(const std::byte* kept, std::int64_t channels, float* to);

  void clear(std::int64_t tiles) const;                 // the first ones
  void move(std::int64_t from, std::int64_t to) const;  // a flow's, from place to place
  float get(std::int64_t place, std::int64_t channel) const;
  void set(std::int64_t place, std::int64_t channel, float value) const;

 private:
  std::byte* tile(std::int64_t t) const { return start_ + t * values_of_tile_ * bytes_; }
  std::byte* at(std::int64_t place, std::int64_t channel) const;

  const bool bf16_;
  const std::int64_t bytes_, values_of_tile_, channels_;  // bytes_: of a value
  const at::Tensor values_;
  std::byte* const start_;
};

}  // namespace twinbench::energy_flow::flow_forward
