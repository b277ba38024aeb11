// Generators of inputs and weights: Philox draws by tensor number, and the toy weights of the worked examples.
// All return contiguous fp32 CPU tensors and are pure functions of their arguments.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace twinbench::draws {

// Weights. Element i of tensor `number` is drawn at Philox counter (i, number, 0, weights stream): specification 0.6.
at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed, std::uint32_t number, double standard_deviation = 1.0);
at::Tensor uniform(at::IntArrayRef shape, std::uint64_t seed, std::uint32_t number, double low, double high);
// Uniform in +-1/sqrt(fan_in): the initial weights and biases of a plain linear layer.
at::Tensor fan_in_uniform(at::IntArrayRef shape, std::int64_t fan_in, std::uint64_t seed, std::uint32_t number);
// Uniform in +-gain*sqrt(6/(fan_in+fan_out)) for a weight [out, in].
at::Tensor xavier_uniform(std::int64_t out, std::int64_t in, std::uint64_t seed, std::uint32_t number,
                          double gain = 1.0);

// Data, by the name of a case's distribution, of typical magnitude `scale`:
//   normal       standard deviation `scale`
//   uniform      in +-scale
//   zeros        all zero
//   some_zeros   every third value zero, of either sign in turn; the rest normal
//   heavy_tail   a normal times exp(1.5 * another normal): a few values hundreds of times the typical one
//   adversarial  signed zeros, denormals, bf16 rounding ties, +-1 and +-1e3 (times scale) among normal values
// Throws kUnknownName for any other name. Drawn from the synthetic-data stream, so never equal to a weight tensor.
at::Tensor drawn(const std::string& distribution, at::IntArrayRef shape, std::uint64_t seed, std::uint32_t number,
                 double scale = 1.0);

// The distributions that drawn() knows.
std::vector<std::string> distributions();

// The worked examples' weights (specification 0.7): (((7i + 3j + k) mod 11) - 5) / 10, and biases
// (((5i + k) mod 7) - 3) / 20, for output row i and input column j.
at::Tensor toy_weight(std::int64_t rows, std::int64_t columns, std::int64_t k);
at::Tensor toy_bias(std::int64_t rows, std::int64_t k);
// Literal values in row-major order.
at::Tensor literal(at::IntArrayRef shape, std::initializer_list<double> values);

}  // namespace twinbench::draws
