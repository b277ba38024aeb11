// What every CUDA adapter needs of the device: the check that inputs lie on one, the guard around run(), the stream.
#pragma once

#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#include <utility>

#include "kernels/common/arguments.h"
#include "optimized/common/products.h"
#include "optimized/common/tensors.h"
#include "src/common/error.h"

namespace twinbench {

inline kernels::Stream stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

// A matrix in fp32, and in bf16 mode also as the products take it.
struct Operand {
  at::Tensor exact, rounded;  // rounded: undefined in fp32 mode

  static Operand like(const at::Tensor& shape, bool bf16) {
    return {at::empty_like(shape), bf16 ? at::empty_like(shape, shape.options().dtype(at::kBFloat16)) : at::Tensor()};
  }
  const at::Tensor& factor() const { return rounded.defined() ? rounded : exact; }
  kernels::Operands<float> both() const {
    return {.plain = data<float>(exact), .bf16 = rounded.defined() ? data<std::uint16_t>(rounded) : nullptr};
  }
  // What only the products read.
  kernels::Operands<float> only_factor() const { return operands<float>(factor()); }
};

// Path's run() on the device of its inputs and without a tape.
template <class Path>
class OnDevice final : public Runnable {
 public:
  OnDevice(const NamedTensors& inputs, const Setting& setting)
      : device_(setting.device), path_(checked(inputs), setting) {}
  void run() override {
    const c10::cuda::CUDAGuard device(device_);
    const at::NoGradGuard no_tape;
    path_.run();
  }
  void reset() override { path_.reset(); }
  NamedTensors outputs() override { return path_.outputs(); }

 private:
  static const NamedTensors& checked(const NamedTensors& inputs) {
    for (const auto& [name, tensor] : inputs)
      if (!tensor.is_cuda())
        throw Error(ErrorKind::kMissingDevice, name, tensor.device().str(), "put the inputs on a CUDA device");
    return inputs;
  }

  c10::Device device_;
  Path path_;
};

template <class Path>
std::unique_ptr<Runnable> make_on_device(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<OnDevice<Path>>(inputs, setting);
}

}  // namespace twinbench
