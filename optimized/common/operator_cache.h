// Set-ups of the custom operators, kept from call to call: a call from Python costs what run() costs.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/UndefinedTensorImpl.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/component.h"

namespace twinbench::operators {

// What a set-up depends on: every scalar, the sizes and dtypes of the data, and of each parameter (weight, bias, gain)
// which tensor it is, in which storage it lies and which version it has. PyTorch raises the version at every write that
// autograd could see: optimizers, copy_, load_state_dict, writes under no_grad. It does not where a writer evades it
// (`p.data`, NumPy, DLPack): on the CPU some values of each parameter are part of the key, so that a new set of values
// is met all the same; on CUDA, as in autograd's own check, and for single values, such a write is not seen: write in
// no_grad.
class CallKey {
 public:
  void add(std::int64_t word) { words_.push_back(word); }
  void add_data(const at::Tensor& tensor);
  // False where the tensor has no version: such calls are not kept.
  bool add_parameter(const at::Tensor& tensor);

  bool operator==(const CallKey& other) const { return words_ == other.words_; }
  // True once no call can have this key again: a parameter has been freed or written to.
  bool outlived() const;

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  // Weak: tensor and storage may die, but as long as this lives no other ones get their addresses. (The values' memory
  // is given out again at once, so where they lie tells nothing.)
  struct Parameter {
    WeakTensor tensor;
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    const c10::TensorImpl* address;
    std::uint32_t version;
  };
  void add_layout(const at::Tensor& tensor);

  std::vector<std::int64_t> words_;
  std::vector<Parameter> parameters_;
};

struct PreparedCall {
  std::optional<CallKey> key;               // none: not to be kept
  std::vector<at::Tensor> data, gradients;  // what the runnable reads: private copies, in the arguments' order
  std::unique_ptr<Runnable> runnable;
  std::function<void()> check = {};  // refuses data that the runnable cannot take, as its making did; empty: takes all
};

// The set-ups of one operator on one device. Memory: at most kMost of them, each with its packed weights, the storages
// of weights that it did not pack, and the buffers of one call. Those whose weights have been freed or written to go
// with the next call that finds none; beyond kMost the least recently used goes.
class OperatorCache {
 public:
  static constexpr std::size_t kMost = 16;

  // A set-up with this key, or null. It is the caller's alone until it gives it back: two threads never share one.
  std::unique_ptr<PreparedCall> take(const CallKey& key);
  void give_back(std::unique_ptr<PreparedCall> call);

 private:
  using Calls = std::list<std::unique_ptr<PreparedCall>>;
  std::mutex mutex_;  // guards calls_, and is not held while anything runs or is freed
  Calls calls_;       // most recently used first
};

}  // namespace twinbench::operators
