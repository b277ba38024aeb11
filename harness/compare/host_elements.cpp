// One reader function per dtype, chosen once per tensor.
#include "harness/compare/host_elements.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "src/common/error.h"

namespace twinbench {

namespace {

template <typename Scalar>
void read_as(const void* data, std::int64_t offset, std::int64_t count, double* out) {
  const Scalar* const from = static_cast<const Scalar*>(data) + offset;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (sizeof(Scalar) == 2 && !std::is_integral_v<Scalar>)
      out[i] = static_cast<float>(from[i]);
    else
      out[i] = static_cast<double>(from[i]);
  }
}

}  // namespace

HostElements::HostElements(const at::Tensor& tensor) : host_(tensor.detach().to(at::kCPU).contiguous()) {
  data_ = host_.const_data_ptr();
  size_ = host_.numel();
  switch (host_.scalar_type()) {
    case at::kDouble: read_ = read_as<double>; break;
    case at::kFloat: read_ = read_as<float>; break;
    case at::kBFloat16: read_ = read_as<c10::BFloat16>; break;
    case at::kHalf: read_ = read_as<c10::Half>; break;
    case at::kLong: read_ = read_as<std::int64_t>; break;
    case at::kInt: read_ = read_as<std::int32_t>; break;
    case at::kShort: read_ = read_as<std::int16_t>; break;
    case at::kChar: read_ = read_as<std::int8_t>; break;
    case at::kByte: read_ = read_as<std::uint8_t>; break;
    case at::kBool: read_ = read_as<bool>; break;
    default:
      throw Error(ErrorKind::kBadDtype, "output dtype", c10::toString(host_.scalar_type()),
                  "real, integer and bool tensors can be compared");
  }
}

double stored_as(double value, c10::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return static_cast<float>(value);
    case at::kBFloat16: return static_cast<float>(c10::BFloat16(static_cast<float>(value)));
    case at::kHalf: return static_cast<float>(c10::Half(static_cast<float>(value)));
    default: return value;
  }
}

}  // namespace twinbench
