// A bf16 number is the upper half of a float's bits.
#include "optimized/energy_flow/common/state_field.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/common/math.h"
#include "optimized/energy_flow/common/tile_networks.h"
#include "src/common/cpu_clones.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

TWINBENCH_CPU_CLONES void widen_values(const std::uint16_t* __restrict from, std::int64_t count,
                                       std::uint32_t* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint32_t>(from[i]) << 16;
}
TWINBENCH_CPU_CLONES void narrow_values(const std::uint32_t* __restrict from, std::int64_t count,
                                        std::uint16_t* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<std::uint16_t>(from[i] >> 16);
}

}  // namespace

StateField::StateField(std::int64_t tiles, std::int64_t channels, bool bf16)
    : bf16_(bf16),
      bytes_(bf16 ? 2 : 4),
      values_of_tile_(channels * kLanes),
      channels_(channels),
      values_(at::zeros({tiles * values_of_tile_}, bf16 ? at::kBFloat16 : at::kFloat)),
      start_(static_cast<std::byte*>(values_.mutable_data_ptr())) {}

std::int64_t StateField::tile_bytes(std::int64_t channels, bool bf16) { return channels * kLanes * (bf16 ? 2 : 4); }

float* StateField::open(std::int64_t t, float* room) const {
  if (!bf16_) return reinterpret_cast<float*>(tile(t));
  widen(tile(t), channels_, room);
  return room;
}

void StateField::close(std::int64_t t, const float* opened) const {
  if (bf16_)
    narrow_values(reinterpret_cast<const std::uint32_t*>(opened), values_of_tile_,
                  reinterpret_cast<std::uint16_t*>(tile(t)));
}

void StateField::keep(std::int64_t t, std::byte* to) const {
  std::memcpy(to, tile(t), static_cast<std::size_t>(values_of_tile_ * bytes_));
}
void StateField::take(std::int64_t t, const std::byte* from) const {
  std::memcpy(tile(t), from, static_cast<std::size_t>(values_of_tile_ * bytes_));
}

void StateField::widen(const std::byte* kept, std::int64_t channels, float* to) {
  widen_values(reinterpret_cast<const std::uint16_t*>(kept), channels * kLanes, reinterpret_cast<std::uint32_t*>(to));
}

void StateField::clear(std::int64_t tiles) const {
  std::fill_n(start_, tiles * values_of_tile_ * bytes_, std::byte{0});  // of nothing it may be null
}

std::byte* StateField::at(std::int64_t place, std::int64_t channel) const {
  return tile(place / kLanes) + (channel * kLanes + place % kLanes) * bytes_;
}

void StateField::move(std::int64_t from, std::int64_t to) const {
  for (std::int64_t c = 0; c < channels_; ++c) std::memcpy(at(to, c), at(from, c), static_cast<std::size_t>(bytes_));
}

float StateField::get(std::int64_t place, std::int64_t channel) const {
  if (bf16_)
    return std::bit_cast<float>(static_cast<std::uint32_t>(*reinterpret_cast<std::uint16_t*>(at(place, channel)))
                                << 16);
  return *reinterpret_cast<float*>(at(place, channel));
}

void StateField::set(std::int64_t place, std::int64_t channel, float value) const {
  if (bf16_)
    *reinterpret_cast<std::uint16_t*>(at(place, channel)) =
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(kernels::round_to_bf16(value)) >> 16);
  else
    *reinterpret_cast<float*>(at(place, channel)) = value;
}

}  // namespace twinbench::energy_flow::flow_forward
