// How far honest arithmetic errs at each element of a right answer, found by trying.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "src/registry.h"

namespace twinbench {

// Of fp32, and of what tensor cores leave of it, who may cut operands off.
constexpr double kLastPlace = 0x1p-23, kLastPlaceOfTf32 = 0x1p-10;

// The values, each moved by up to its last place (a share of it), as the trial and the number of the product's operand
// decide.
at::Tensor moved_by_last_place(const at::Tensor& values, std::uint64_t trial, std::size_t number, double last_place);

// The baseline runs eight times in the mode's own arithmetic on the CPU, with both operands of every product moved at
// random by up to fp32's last place, on a card in tf32 by up to that mode's, so that a sum that happens to be exact
// errs too. For each output that is compared within a tolerance, an element each, in fp64; of complex ones the modulus.
// The products are met where the baseline rounds their operands (src/rounding.h). What else it computes from is met by
// its inputs, all of which are moved so too: a component may round nothing, or its states and not its costs.
struct Trials {
  // Root mean square distance from the right answer. In modes that round, the moved operands are those of the oracle's
  // own roundings: it is the error of settled elements (rounding_decisions.h).
  NamedTensors settled;
  // In modes that round: the largest distance where every open rounding goes either way at random, twice that for the
  // flips that the trials did not have together, over kOutOfReach.
  NamedTensors flipped;
};
Trials trials_of(const Component& component, const Setting& setting, const NamedTensors& generated);

// The inputs, floating ones moved by up to that share of themselves, in each trial otherwise; whole numbers
// towards zero alone.
NamedTensors moved_inputs(const NamedTensors& generated, std::uint64_t trial, double share = kLastPlace);

// How far the outputs of several runs are from the right ones, of those that are compared within a tolerance: for each
// element, in fp64; of complex ones the modulus. Zero where there is no number.
class Distances {
 public:
  Distances(std::vector<OutputSpec> specs, NamedTensors right) : specs_(std::move(specs)), right_(std::move(right)) {}
  void add(const NamedTensors& outputs);
  NamedTensors root_mean_square() const;
  NamedTensors largest() const;

 private:
  const std::vector<OutputSpec> specs_;
  const NamedTensors right_;
  std::int64_t runs_ = 0;
  NamedTensors sums_, most_;  // of squares
};

// In modes that round: which output is another, if it is exact, or far from `right`, the oracle's, in one of eight runs
// in which open roundings go either way and what follows is decided by what came of them, as the words of a text are;
// or that the baseline itself decides otherwise than the oracle; empty where nothing does.
std::string decided_by_roundings(const Component& component, const Setting& setting, const NamedTensors& generated,
                                 const NamedTensors& right);

}  // namespace twinbench
