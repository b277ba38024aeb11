// Choosing the elements, and writing them.
#include "harness/bench/content_walk.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstring>

#include "src/common/philox.h"

namespace twinbench {
namespace {

constexpr std::size_t kMostPlaces = 40, kTries = 64;

std::uint64_t bits_at(const at::Tensor& tensor, std::int64_t element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(tensor.const_data_ptr()) + element * tensor.element_size(),
              tensor.element_size());
  return bits;
}

}  // namespace

ContentWalk::ContentWalk(const NamedTensors& live, const NamedTensors& own, const NamedTensors& other,
                         const std::vector<std::string>& names) {
  std::uint32_t draw = 0;
  const std::size_t each = names.empty() ? 0 : std::max<std::size_t>(4, kMostPlaces / names.size());
  for (const auto& name : names) {
    const at::Tensor& tensor = live[name];
    if (!tensor.is_floating_point() || !tensor.is_contiguous() || !tensor.device().is_cpu() || tensor.numel() == 0 ||
        own[name].scalar_type() != tensor.scalar_type() || tensor.element_size() > 8)
      continue;
    std::size_t found = 0;
    for (std::size_t attempt = 0; attempt < kTries && found < each && places_.size() < kMostPlaces; ++attempt) {
      const std::uint64_t random = philox(0x51ab, draw++, 0, 0, philox_tag(PhiloxStream::kShuffle, 7)).w[0];
      const auto element = static_cast<std::int64_t>(random % static_cast<std::uint64_t>(tensor.numel()));
      const Place place{static_cast<char*>(tensor.mutable_data_ptr()) + element * tensor.element_size(),
                        tensor.element_size(), bits_at(own[name], element), bits_at(other[name], element)};
      const bool taken =
          std::any_of(places_.begin(), places_.end(), [&](const Place& one) { return one.at == place.at; });
      if (taken || place.own == place.other) continue;
      places_.push_back(place);
      ++found;
    }
  }
  flipped_.resize(places_.size(), false);
}

void ContentWalk::put(const Place& place, std::uint64_t value) { std::memcpy(place.at, &value, place.bytes); }

void ContentWalk::go_on() {
  for (std::size_t i = 0; i < places_.size(); ++i) put(places_[i], flipped_[i] ? places_[i].other : places_[i].own);
}

void ContentWalk::set_apart(bool apart) {
  if (places_.empty()) return;
  const Place& place = places_[steps_ % places_.size()];
  put(place, apart ? place.own : place.other);
}

}  // namespace twinbench
