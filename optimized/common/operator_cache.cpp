// Keys of calls, and the list of set-ups that wait for the next call.
#include "optimized/common/operator_cache.h"

#include <algorithm>
#include <cstring>

namespace twinbench::operators {
namespace {

// Values that lie evenly over the parameter's memory, first and last among them, mixed into one word.
std::int64_t sampled(const at::Tensor& tensor) {
  constexpr std::int64_t kSamples = 16;
  if (tensor.numel() == 0) return 0;
  std::int64_t last = 0;  // the last element's place; in a strided view neighbours count too
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis) last += (tensor.size(axis) - 1) * tensor.stride(axis);
  const auto* bytes = static_cast<const char*>(tensor.const_data_ptr());
  const std::size_t width = tensor.element_size();
  std::uint64_t mixed = 0;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes + static_cast<std::size_t>(last * i / (kSamples - 1)) * width,
                std::min(width, sizeof(bits)));
    mixed = (mixed ^ bits) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 29;
  }
  return static_cast<std::int64_t>(mixed);
}

}  // namespace

void CallKey::add_layout(const at::Tensor& tensor) {
  const c10::Device device = tensor.device();
  add(tensor.dim() | static_cast<std::int64_t>(tensor.scalar_type()) << 8 |
      static_cast<std::int64_t>(device.type()) << 16 | static_cast<std::int64_t>(device.index()) << 24);
  for (const std::int64_t size : tensor.sizes()) add(size);
}

void CallKey::add_data(const at::Tensor& tensor) { add_layout(tensor); }

bool CallKey::add_parameter(const at::Tensor& tensor) {
  const c10::TensorImpl* address = tensor.unsafeGetTensorImpl();
  if (!address->version_counter().enabled()) return false;  // an inference tensor
  const std::uint32_t version = address->version_counter().current_version();
  const at::Storage& storage = tensor.storage();
  parameters_.push_back({WeakTensor(tensor.getIntrusivePtr()), storage.getWeakStorageImpl(), address, version});
  add_layout(tensor);
  for (const std::int64_t stride : tensor.strides()) add(stride);
  add(reinterpret_cast<std::intptr_t>(address));
  // `p.data = other` and resizing keep the version.
  add(reinterpret_cast<std::intptr_t>(storage.unsafeGetStorageImpl()));
  add(reinterpret_cast<std::intptr_t>(tensor.const_data_ptr()));
  add(version);
  if (tensor.is_cpu()) add(sampled(tensor));
  return true;
}

bool CallKey::outlived() const {
  return std::any_of(parameters_.begin(), parameters_.end(), [](const Parameter& parameter) {
    return parameter.tensor.expired() || parameter.storage.expired() ||
           parameter.address->version_counter().current_version() != parameter.version;
  });
}

std::unique_ptr<PreparedCall> OperatorCache::take(const CallKey& key) {
  Calls freed;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  for (auto call = calls_.begin(); call != calls_.end(); ++call)
    if (*(*call)->key == key) {
      auto found = std::move(*call);
      calls_.erase(call);
      return found;
    }
  for (auto call = calls_.begin(); call != calls_.end();) {
    const auto next = std::next(call);
    if ((*call)->key->outlived()) freed.splice(freed.end(), calls_, call);
    call = next;
  }
  return nullptr;
}

void OperatorCache::give_back(std::unique_ptr<PreparedCall> call) {
  Calls freed;
  const std::lock_guard lock(mutex_);
  calls_.push_front(std::move(call));
  if (calls_.size() > kMost) freed.splice(freed.end(), calls_, std::prev(calls_.end()));
}

}  // namespace twinbench::operators
