// A component's optimized side as PyTorch custom operators: one definition a component, all else follows from its schema.
#pragma once

#include <torch/library.h>

#include <string>
#include <vector>

#include "src/named_tensors.h"

namespace twinbench {

// Arguments bear the names of the component's inputs and options: a list `weight` stands for the inputs weight_0,
// weight_1, ...; `bool bf16_products` is the numeric mode; any other scalar is the option of its name.
struct OperatorDefinition {
  std::string component;  // "energy_flow.simple_neuron" becomes twinbench::energy_flow_simple_neuron
  std::string arguments;  // "Tensor position, ..., *, bool bf16_products=False"
  std::string results;    // "Tensor features": outputs of the component
  std::vector<std::string> not_differentiable;  // arguments and results that the backward pass has no gradient of
  // The results' shapes and dtypes without their values, for tensors whose sizes may be symbols.
  NamedTensors (*empty_results)(const NamedTensors& inputs);
};

// Defines twinbench::<c>, and twinbench::<c>_backward, which takes the results' gradients before the arguments and returns
// the arguments' gradients; it computes the forward pass again, so that only the arguments are kept between the two.
// Both run what the component's optimized variant runs, on the CPU (float32, float64) and, in a build with CUDA, on CUDA
// (float32), and have Meta and Autograd implementations. Bad arguments raise ValueError or TypeError and are named.
void register_operator(torch::Library& library, const OperatorDefinition& definition);

namespace operators {

// The call's tensors under the names of the component's inputs.
NamedTensors tensors_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments);
// Replaces the call's arguments by its results, in the schema's order.
void return_results(const c10::FunctionSchema& schema, const NamedTensors& results, torch::jit::Stack* stack);
// The Autograd implementation of any operator defined above; the same for all.
torch::CppFunction autograd_function();

}  // namespace operators
}  // namespace twinbench
