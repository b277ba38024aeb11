// One reader function per dtype, chosen once per tensor.
#include "harness/compare/host_elements.h"

#include <ATen/ops/view_as_real.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <array>

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

bool holds_complex(const at::Tensor& tensor, Element element) {
  return tensor.is_complex() || (element == Element::kPlanar && tensor.is_floating_point());
}

HostElements::HostElements(const at::Tensor& tensor, Element element)
    : host_(tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous()) {
  if (host_.is_complex()) {
    host_ = at::view_as_real(host_);
    layout_ = Layout::kInterleaved;
  } else if (holds_complex(host_, element)) {
    if (host_.dim() == 0 || host_.size(0) != 2)
      throw Error(ErrorKind::kBadShape, "planar tensor", c10::str(host_.sizes()), "its first axis is the two planes");
    layout_ = Layout::kPlanes;
  }
  data_ = host_.const_data_ptr();
  size_ = is_complex() ? host_.numel() / 2 : host_.numel();
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
                  "real, complex, integer and bool tensors can be compared");
  }
}

void HostElements::read(std::int64_t offset, std::int64_t count, Complex* out) const {
  double* const parts = reinterpret_cast<double*>(out);  // an array of them, as the standard has it
  if (layout_ == Layout::kInterleaved) return read_(data_, 2 * offset, 2 * count, parts);
  std::array<double, kChunk> plane;
  for (std::int64_t done = 0; done < count; done += kChunk) {
    const std::int64_t now = std::min(kChunk, count - done);
    read_(data_, offset + done, now, plane.data());
    for (std::int64_t i = 0; i < now; ++i) out[done + i] = plane[i];
    if (layout_ == Layout::kReal) continue;
    read_(data_, size_ + offset + done, now, plane.data());
    for (std::int64_t i = 0; i < now; ++i) out[done + i].imag(plane[i]);
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
