// The optimized variants as PyTorch custom operators: everything about them follows from the components' signatures.
#pragma once

#include <torch/library.h>

#include <string>
#include <vector>

#include "src/registry.h"

namespace twinbench {

// Defines twinbench::<pipeline>_<component> from the component's signature, and twinbench::<...>_backward, which takes
// the results' gradients before the arguments and returns the arguments' gradients; it computes the forward pass again.
// Autograd calls two others, where the optimized variant has two halves (two_halves.h): <...>_keeping returns, after
// the results, copies of what the backward half reads (autograd saves them as it saves the arguments), and
// <...>_backward_kept takes those between the gradients and the arguments. A graph that is traced (torch.compile)
// holds the first two. Arguments bear the names of the inputs (a list stands for inputs that are one per layer), of
// sizes that no input's length tells, and of options; `bool bf16_products` is the numeric mode. Both run what the
// optimized variant runs, on the CPU (float32, float64) and, in a build with CUDA, on CUDA (float32), and have Meta and
// Autograd implementations.
// Under torch.autocast they take bf16 and fp16 tensors too, as fp32; elsewhere these are refused.
// Bad arguments raise ValueError or TypeError and are named: every call looks at data on the host, and on CUDA the call
// that makes a set-up, for every look would wait for the device.
void register_operator(torch::Library& library, const ComponentSpec& spec);

// A pure function of tensors of known shapes: what the PyTorch operators are made of.
bool is_tensor_operator(const Component& component);

namespace operators {

// Sizes that are no input's length and no count of inputs: the extents of a result, say. They are given by name.
std::vector<std::string> untold_sizes(const Signature& signature);

// The given tensors under their formal names, those of the component's inputs.
NamedTensors tensors_of(c10::ArrayRef<c10::Argument> names, c10::ArrayRef<c10::IValue> arguments);
// Replaces the call's arguments by its results, in the schema's order.
void return_results(const c10::FunctionSchema& schema, const NamedTensors& results, torch::jit::Stack* stack);
// A component's four operators on a device. They share their set-ups: operator_cache.h.
struct ComputeFunctions {
  torch::CppFunction forward, backward, keeping, backward_kept;
};
ComputeFunctions compute_functions(const std::string& component, c10::DeviceType device);
// The Autograd implementation of any component's operator; the same for all.
torch::CppFunction autograd_function();
// The Autocast implementation, likewise.
torch::CppFunction autocast_function();

}  // namespace operators
}  // namespace twinbench
