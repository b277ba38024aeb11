// A variant in plain ATen, run forward or through autograd's tape: what is the same in every baseline and library one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/inputs.h"

namespace twinbench {

// A derived class computes its outputs in compute(), which hands them over by result() or, where the origin keeps them
// row by row, by root(). Forward: the outputs. Backward: grad_<input> of every differentiable input, the tape being the
// graph that compute() builds. Everything about names and modes comes from the component's signature.
class TapeBaseline : public Runnable {
 public:
  // The library's way: its products of bf16 operands on a card, and every kernel that LibTorch would take by itself.
  enum class Way { kBaseline, kLibrary };

  void run() override;
  NamedTensors outputs() override;

 protected:
  // In bf16 mode inputs_ holds the weights rounded already.
  TapeBaseline(const NamedTensors& inputs, const Setting& setting, Way way = Way::kBaseline);

  virtual void compute() = 0;

  // Makes the differentiable inputs leaves of the tape. Last in a derived constructor: whatever it did to the inputs is
  // then no part of the tape. Inputs in `unused` take no part in this mode: their gradients are zeros made here, once.
  void make_leaves(const std::vector<std::string>& unused = {});

  // An input as the host knows it, which stays where it is: on the CPU the input itself, of a card's a copy that every
  // run begins with.
  const at::Tensor& on_host(const std::string& input);

  // A whole output; in the backward pass its gradient is the given grad_<output>.
  void result(const std::string& output, at::Tensor value);
  // Part of an output in the backward pass, with the gradient that reaches it.
  void root(at::Tensor value, at::Tensor gradient);
  // From the roots that there are to the gradients; run() ends with it.
  void replay();

  // x [rows, in] -> [rows, out], in the setting's numeric mode.
  at::Tensor linear(const at::Tensor& x, const std::string& weight, const std::string& bias) const;
  at::Tensor product(const at::Tensor& x, const std::string& weight) const;  // without a bias
  at::Tensor layer_norm(const at::Tensor& x, const std::string& gain, const std::string& shift) const;

  NamedTensors inputs_;
  NamedTensors results_;
  const Setting setting_;
  const bool backward_, round_;

 private:
  const Way way_;
  std::map<std::string, at::Tensor> on_host_;
  NamedTensors unused_;
  std::vector<std::string> leaf_names_;
  std::vector<at::Tensor> leaves_, roots_, root_gradients_;
};

}  // namespace twinbench
