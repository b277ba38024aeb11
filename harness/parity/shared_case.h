// What all variants of a case are judged by, made once: inputs, right answers, other inputs with theirs, and the checks
// that look at these alone.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "harness/parity/reference.h"

namespace twinbench {

struct ParityOptions;

class SharedCase {
 public:
  // Inputs generated, oracle and baseline run. `oracles` is shared by the dtypes of a case, which often have equal
  // inputs.
  SharedCase(const Component& component, const Setting& setting, std::uint64_t seed,
             std::shared_ptr<OracleCache> oracles);
  SharedCase(const SharedCase&) = delete;
  SharedCase& operator=(const SharedCase&) = delete;

  const NamedTensors& generated() const { return generated_; }  // fp32 and integers, on the CPU
  const Reference& reference() const { return reference_; }
  std::int64_t elements() const;  // of all inputs and outputs

  // The inputs of the next seed and the right answers where the inputs of `names` come from them. Made on first use.
  const NamedTensors& other_inputs();
  struct Changed {
    NamedTensors generated;
    Reference reference;
    std::string no_case;  // why these inputs are none: the baseline itself would not pass
  };
  const Changed& changed(const std::set<std::string>& names);
  // The same with every input another (see perturbed_inputs), weights and neutral values too. Made on first use.
  const Changed& perturbed();
  // The same items in other places (see turned_inputs); null where that changes no table. Made on first use.
  const Changed* turned();

  // Empty, or why nothing that failed on these inputs, or on changed ones made so far, says anything: they are no case
  // (Reference::no_case).
  std::string no_case() const;

  // Look at oracle and baseline only, so that they hold for every variant. Made on first use.
  const CheckResult& vacuity();
  const CheckResult& gradient(const ParityOptions& options);

 private:
  const Component& component_;
  Setting setting_;
  std::uint64_t seed_;
  std::shared_ptr<OracleCache> oracles_;
  NamedTensors generated_;
  Reference reference_;
  std::optional<NamedTensors> other_;
  std::map<std::set<std::string>, std::unique_ptr<Changed>> changed_;
  std::unique_ptr<Changed> perturbed_, turned_;
  bool turns_ = true;
  std::optional<CheckResult> vacuity_;
};

// The shared cases of consecutive cells: kept while the next cell is of the same case, device and dtype; oracles while
// it is
// of the same case.
class SharedCases {
 public:
  // Throws what a generator, the oracle or the baseline throws; the next call then tries again.
  SharedCase& of(const Component& component, const Setting& setting, std::uint64_t seed);

 private:
  std::string case_key_, cell_key_;
  std::shared_ptr<OracleCache> oracles_;
  std::unique_ptr<SharedCase> shared_;
};

}  // namespace twinbench
