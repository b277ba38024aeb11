// The contract: what a component IS. Plain value types; no implementation, no engine.
// A component is a data record; one generic engine each tests, counts, times, lists and reports all of them.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/named_tensors.h"
#include "src/signature.h"

namespace twinbench {

enum class Variant { kBaseline, kOptimized, kLibrary };

// What a cell's <dtype> means: the numeric mode of the specifications. Floating inputs are fp32 tensors in kFp32 and
// kBf16, fp64 tensors in kFp64 (the oracle; baselines only). In kBf16 both operands of every matrix product are rounded
// to bf16 (nearest, ties to even), products are accumulated and returned in fp32, and all else stays fp32.
enum class Dtype { kFp64, kFp32, kBf16 };

enum class Pass { kForward, kBackward };

using Sizes = std::map<std::string, std::int64_t>;  // {"flows": 256, "hidden": 512}
using Options = std::map<std::string, double>;      // {"noise": 0.05}: real-valued settings and switches (0 or 1)

// A named input set. Backward cases get the forward inputs plus grad_<output>, and return grad_<input>.
struct Case {
  std::string name;  // tiny, odd, train, stress, ...: a role, not a size
  Sizes sizes;
  Options options;
  std::string distribution = "normal";  // normal, uniform, zeros, heavy_tail, adversarial: read by make_inputs
  Pass pass = Pass::kForward;
  bool degenerate = false;  // the right answer is constant or empty: exempt from the vacuity guard
  bool timed = false;       // measured by `twinbench bench`; the others are parity and counter cases
};

// Everything a factory or generator needs to know beside the tensors.
struct Setting {
  Case input_case;  // the case, with any sizes overridden on the command line
  Dtype dtype = Dtype::kFp32;
  c10::Device device = c10::Device(c10::DeviceType::CPU);

  std::int64_t size(const std::string& name) const;  // throws kUnknownName
  double option(const std::string& name) const;      // throws kUnknownName
  double option_or(const std::string& name, double otherwise) const;
};

// One variant, set up. The constructor did all setup: it is outside the timed region. run() is the timed region; after
// its first call an optimized variant allocates nothing and reads nothing back. outputs() names the results of the
// last run(); it may copy, and the next run() may overwrite what it returned.
class Runnable {
 public:
  virtual ~Runnable() = default;
  virtual void run() = 0;
  virtual NamedTensors outputs() = 0;
};

// Inputs lie on setting.device. Throws Error on a shape, dtype or size it cannot take. Never falls back to another device.
using Factory = std::unique_ptr<Runnable> (*)(const NamedTensors& inputs, const Setting& setting);

// An input whose slice along `batch_axis` belongs to one batch item. Weights have none and are not listed.
struct BatchedInput {
  std::string name;
  std::int64_t batch_axis = 0;
};

// The deterministic counter that shows the sin present in the baseline and gone from the optimized variant.
// The expected values are formulas of the case's sizes; the engine checks both for equality, on every counted case.
struct ProofCounter {
  std::string counter;  // a field of CounterSnapshot: dispatches, scalar_reads, copies, allocations, ...
  std::string formula;  // the baseline's formula in words, for the report
  std::function<std::int64_t(const Setting&)> baseline;
  std::function<std::int64_t(const Setting&)> optimized;
};

// What any version must move and compute, once, for the roofline.
struct Cost {
  double bytes = 0;
  double flops = 0;
};

// A figure in the source documents that this component bears on.
struct Claim {
  std::string document;  // "D0", "D1", "D3"
  std::string text;      // the claim in our words
  std::string figure;    // "5x"
  std::optional<double> ratio;  // as a speedup, where it is one: shown beside the measured ratio
  std::string verdict;   // the specification's judgement: ok, wrong, infeasible, unproven, ...
};

// A worked example of the specification: literal inputs and literal outputs.
struct Golden {
  std::string name;
  Setting setting;
  NamedTensors inputs;
  NamedTensors expected;  // every name must be an output; an entry may cover a subset of the outputs
  double absolute = 5e-6;
};

// A property every variant must keep (a bounded state, a conserved sum). Returns an empty string, or what is broken.
struct Invariant {
  std::string name;
  std::function<std::string(const NamedTensors& inputs, const NamedTensors& outputs, const Setting&)> broken;
};

struct ComponentSpec {
  std::string pipeline, name;
  std::string summary;  // one sentence
  std::string source;   // "energy_flow C07"
  std::string sin;      // what the documents accuse the baseline of, a phrase
  std::string regime = "hot";  // cold, hot or rotating: printed beside every time
  std::vector<Dtype> dtypes = {Dtype::kFp32};
  std::vector<Case> cases;
  // Pure: the same setting and seed give the same fp32 (or integer) CPU tensors. Weights are inputs.
  std::function<NamedTensors(const Setting&, std::uint64_t seed)> make_inputs;
  std::vector<OutputSpec> outputs;
  std::vector<OutputSpec> gradients;  // outputs of backward cases, named grad_<input>
  std::vector<BatchedInput> batched_inputs;
  // Where a discrete decision is involved: which batch items (a bool tensor of batch_size elements) lie so close to one
  // that rounding may decide it, by the specification's margins for the setting's dtype. Their outputs are not compared,
  // and they may be at most 1 % of the items (25 % in kBf16). Gets the forward outputs of the fp64 oracle.
  std::function<at::Tensor(const NamedTensors& oracle_outputs, const Setting&)> ambiguous;
  std::string batch_size;  // the size that counts batch items ("flows"); empty: not batched
  std::vector<ProofCounter> proof;
  std::function<Cost(const Setting&)> cost;
  std::vector<Claim> claims;
  std::vector<std::function<Golden()>> goldens;
  std::vector<Invariant> invariants;

  std::string id() const { return pipeline + "." + name; }
};

}  // namespace twinbench
