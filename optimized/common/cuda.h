// What every CUDA adapter needs: operands, and the runnable that keeps the device, the stream and the tape right. The
// same text for a card and for the host (simt): runtime.h has what differs.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/common/arguments.h"
#include "kernels/common/launch_check.h"
#include "optimized/common/products.h"
#include "optimized/common/runtime.h"
#include "optimized/common/tensors.h"
#include "optimized/common/two_halves.h"
#include "src/common/error.h"
#include "src/stepwise.h"

namespace twinbench {

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

// Path's run() on the device of its inputs and without a tape. Two halves where the path has them.
template <class Path, class Kind = std::conditional_t<std::is_base_of_v<TwoHalves, Path>, TwoHalves, Runnable>>
class OnDevice : public Kind {
 public:
  OnDevice(const NamedTensors& inputs, const Setting& setting)
      : device_(setting.device), path_(checked(inputs), setting) {}
  void run() override {
    there([&] { path_.run(); });
  }
  void reset() override { path_.reset(); }
  NamedTensors outputs() override { return path_.outputs(); }

 protected:
  template <class Work>
  void there(const Work& work) {
    const DeviceGuard device(device_);
    const kernels::simt::RunScope on(stream());
    const at::NoGradGuard no_tape;
    work();
  }
  Path& path() { return path_; }

 private:
  static const NamedTensors& checked(const NamedTensors& inputs) {
    for (const auto& [name, tensor] : inputs)
      if (!lies_there(tensor.device()))
        throw Error(ErrorKind::kMissingDevice, name, tensor.device().str(), kWhereInputsGo);
    return inputs;
  }

  c10::Device device_;
  Path path_;
};

template <class Path>
class HalvesOnDevice final : public OnDevice<Path> {
 public:
  using OnDevice<Path>::OnDevice;
  void run_forward() override {
    this->there([&] { this->path().run_forward(); });
  }
  NamedTensors forward_outputs() override { return this->path().forward_outputs(); }
  std::vector<at::Tensor> kept() override { return this->path().kept(); }
  void run_backward() override {
    this->there([&] { this->path().run_backward(); });
  }
  NamedTensors give_outputs() override { return this->path().give_outputs(); }
};

// Steps one by one, where the path takes them so.
template <class Path>
class StepsOnDevice final : public OnDevice<Path>, public Stepwise {
 public:
  using OnDevice<Path>::OnDevice;
  void begin() override {
    this->there([&] { this->path().begin(); });
  }
  void step() override {
    this->there([&] { this->path().step(); });
  }
  NamedTensors state() override {
    NamedTensors state;
    this->there([&] { state = this->path().state(); });
    return state;
  }
  void set_state(const NamedTensors& state) override {
    this->there([&] { this->path().set_state(state); });
  }
};

template <class Path>
std::unique_ptr<Runnable> make_on_device(const NamedTensors& inputs, const Setting& setting) {
  if constexpr (std::is_base_of_v<TwoHalves, Path>)
    return std::make_unique<HalvesOnDevice<Path>>(inputs, setting);
  else if constexpr (std::is_base_of_v<Stepwise, Path>)
    return std::make_unique<StepsOnDevice<Path>>(inputs, setting);
  else
    return std::make_unique<OnDevice<Path>>(inputs, setting);
}

}  // namespace twinbench
