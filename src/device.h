// Where a cell runs: on the host, on a card, or on the host along the card's path.
#pragma once

#include <c10/core/Device.h>

#include <string>

namespace twinbench {

// `simt` is the CUDA path executed on the host: the tensors lie in host memory, adapters and kernels are the card's. So
// the host and `simt` agree in tensors(), the card and `simt` in takes_cuda_path().
class Device {
 public:
  Device(c10::Device tensors) : tensors_(tensors) {}                                  // NOLINT: cpu or cuda
  Device(c10::DeviceType type = c10::DeviceType::CPU) : Device(c10::Device(type)) {}  // NOLINT
  static Device simt() {
    Device device;
    device.simt_ = true;
    return device;
  }

  bool is_cpu() const { return tensors_.is_cpu() && !simt_; }
  bool is_cuda() const { return tensors_.is_cuda(); }
  bool is_simt() const { return simt_; }
  bool takes_cuda_path() const { return simt_ || is_cuda(); }
  // Where the tensors lie.
  c10::Device tensors() const { return tensors_; }
  operator c10::Device() const { return tensors_; }  // NOLINT(google-explicit-constructor)

  friend bool operator==(const Device& a, const Device& b) { return a.tensors_ == b.tensors_ && a.simt_ == b.simt_; }

 private:
  c10::Device tensors_;
  bool simt_ = false;
};

inline std::string to_string(const Device& device) {
  return device.is_simt() ? "simt" : device.is_cuda() ? "cuda" : "cpu";
}

}  // namespace twinbench
