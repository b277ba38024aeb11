// The contract: what a component IS. Plain value types; no implementation, no engine.
// A component is a data record; one generic engine each tests, counts, times, lists and reports all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/common/error.h"
#include "src/expression.h"
#include "src/named_tensors.h"
#include "src/setting.h"
#include "src/signature.h"

namespace twinbench {

enum class Variant { kBaseline, kOptimized, kLibrary };

// One variant, set up. The constructor did all setup: it is outside the timed region. run() is the timed region; after
// its first call an optimized variant allocates nothing and reads nothing back. outputs() names the results of the
// last run(); it may copy, and the next run() may overwrite what it returned.
class Runnable {
 public:
  virtual ~Runnable() = default;
  virtual void run() = 0;
  virtual NamedTensors outputs() = 0;
  // Returns the state that run() advances (Role::kState) to what it was at set-up; nothing to do where there is none. A
  // variant advances a copy of its own: the given tensors stay unchanged, like all inputs, and the advanced state is
  // among its outputs. Every judged run starts with reset(); timed runs go on from where the last one ended, as
  // training does.
  virtual void reset() {}

  // What everybody calls instead: nothing where the signature has no state, so that no variant does its work there, and
  // is judged right for what it leaves out when it is timed.
  void start_over() {
    if (has_state_) reset();
  }

 private:
  friend struct Component;
  bool has_state_ = false;
};

// Called by Component::make alone: the inputs fit the signature, the setting is complete. Inputs lie on setting.device.
// Throws Error where it cannot take them even so. Never falls back to another device.
using Factory = std::unique_ptr<Runnable> (*)(const NamedTensors& inputs, const Setting& setting);

// The deterministic counter that shows the sin present in the baseline and gone from the optimized variant.
// The expected values are formulas of the case's sizes; the engine checks both for equality, on every counted case.
struct ProofCounter {
  std::string counter;  // a field of CounterSnapshot: dispatches, scalar_reads, copies, allocations, ...
  std::string formula;  // the baseline's formula in words, for the report
  std::function<std::int64_t(const Setting&)> baseline;
  std::function<std::int64_t(const Setting&)> optimized;
  // Where the data decides the counts (iterations until convergence): both formulas get the run's outputs instead.
  std::function<std::int64_t(Variant, const NamedTensors& outputs, const Setting&)> of_result = {};
};

// What any version must move and compute, once, for the roofline.
struct Cost {
  double bytes = 0;
  double flops = 0;
};

// A figure in the source documents that this component bears on.
struct Claim {
  std::string document;         // "D0", "D1", "D3"
  std::string text;             // the claim in our words
  std::string figure;           // "5x"
  std::optional<double> ratio;  // as a speedup, where it is one: shown beside the measured ratio
  std::string verdict;          // the specification's judgement: ok, wrong, infeasible, unproven, ...
};

// A worked example of the specification: literal inputs and literal outputs.
struct Golden {
  std::string name;
  Setting setting;
  NamedTensors inputs;
  NamedTensors expected;   // every name must be an output; an entry may cover a subset of the outputs
  NamedTensors said = {};  // bool: of an expected tensor whose elements it does not give all, those that it gives
  double absolute = 5e-6;
};

// A property every variant must keep (a bounded state, a conserved sum). Returns an empty string, or what is broken.
struct Invariant {
  std::string name;
  std::function<std::string(const NamedTensors& inputs, const NamedTensors& outputs, const Setting&)> broken;
};

// Two settings in which the same variant must give the same: cached or not, one worker or many.
struct Relation {
  std::string name;
  std::function<Setting(Setting)> other;  // from the case's setting
  bool exact = true;                      // bit for bit; else within each output's tolerance
  // Where exact, what an element may be off by: in a setting of another scale terms underflow that are numbers here.
  double underflow = 0;
};

// Input that every variant must refuse when it is made or run, with this kind of error naming this field. Wrong shapes,
// dtypes and options out of range are refused by Component::make and need no entry. `spoil` gets copies of the
// generated inputs (fp32, on the CPU).
struct Refusal {
  std::string name;
  std::function<void(NamedTensors& inputs, Setting& setting)> spoil;
  ErrorKind kind = ErrorKind::kBadArgument;
  std::string field;
};

// Sizes that the kernels do not hold, most often for a block's shared memory: where the optimized variant takes the
// CUDA path, Component::make refuses a setting in which `of` is larger than `most`. Each size up to there must run.
struct CardLimit {
  Expression of;
  std::int64_t most = 0;
  std::optional<Pass> pass;  // none: both
  std::string meaning;       // of the number: "bytes of shared memory"
};

struct ComponentSpec {
  std::string pipeline, name;  // set by the registry, from components.def
  std::string summary;         // one sentence
  std::string source;          // "energy_flow C07"
  std::string sin;             // what the documents accuse the baseline of, a phrase
  std::string no_library;      // why there is no library variant, where there is none
  // Of a variant in LibTorch's operators ("baseline", "library"): why, on a card, its bits differ from run to run.
  std::map<std::string, std::string> unordered_on_card;
  // Of the library variant on a card: case -> why its answer is another than the specified one.
  std::map<std::string, std::string> library_limits;
  // Of the optimized variant on a card: what the host looks at while it issues steps, some of them beyond the end. How
  // many a run launches then depends on when it looks.
  std::string runs_ahead;
  std::string host_work;  // what variants in operators do beside them, an element at a time; empty: nothing
  // What such loops handle, where it grows otherwise than the cost, which is of what is delivered.
  std::function<double(const Setting&)> host_bytes;
  std::string regime = "hot";  // cold, hot or rotating: printed beside every time
  std::vector<Dtype> dtypes = {Dtype::kFp32};
  Signature signature;
  std::vector<Case> cases;
  // What the signature's draws cannot say: keys, planted NaN, values on a boundary. Gets the drawn inputs. Pure.
  std::function<void(NamedTensors& inputs, const Setting&, std::uint64_t seed)> finish_inputs;
  // What the signature cannot say of the data: an index that must be there, a sample that needs a key. Throws Error,
  // which names field, value and remedy. Component::make asks before it makes any variant, an operator before every run
  // on data that the host can read. None: there is nothing to ask.
  std::function<void(const NamedTensors& inputs, const Setting&)> check_inputs;
  // Where a discrete decision is involved: which batch items (a bool tensor of batch_size elements) lie so close to one
  // that rounding may decide it, by the specification's margins for the setting's dtype. Their outputs are not
  // compared, and they may be at most 1 % of the items (25 % in kBf16). Gets the forward outputs of the fp64 oracle.
  std::function<at::Tensor(const NamedTensors& oracle_outputs, const Setting&)> ambiguous;
  // Why the specified gradient is not the derivative of the forward pass, where it is not: no central differences then.
  // Empty text, or none of this: it is.
  std::function<std::string(const Setting&)> custom_gradient;
  // Where the specification's bound depends on weights, options or data: what an output's bound is multiplied with,
  // from 1e-3 to 1e6. Gets the generated inputs (fp32, on the CPU).
  std::function<double(const std::string& output, const NamedTensors& inputs, const Setting&)> bound_factor;
  std::string batch_size;  // the size that counts batch items ("flows"); empty: not batched
  std::vector<ProofCounter> proof;
  std::function<Cost(const Setting&)> cost;
  // How many times over the baseline forms the matrix products that any version must form, at most, where its sin is to
  // form them again and again: the cost is held against that share of what it does. None: once.
  std::function<double(const Setting&)> baseline_repeats;
  // Kernels and library products of one forward run of the optimized variant on the CUDA path, at most, where the
  // specification bounds them: checked by the counters on cuda and simt, where the exact numbers are pinned.
  std::function<std::int64_t(const Setting&)> most_launches;
  std::vector<Claim> claims;
  std::vector<std::function<Golden()>> goldens;  // beside them goldens.json, in the folder of the specification
  std::vector<Invariant> invariants;
  std::vector<Relation> relations;
  std::vector<Refusal> refusals;
  std::vector<CardLimit> card_limits;

  std::string id() const { return pipeline + "." + name; }
};

}  // namespace twinbench
