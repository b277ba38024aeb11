// What variants share, each part made once.
#include "harness/parity/shared_case.h"

#include <chrono>
#include <exception>

#include "harness/compare/inputs.h"
#include "harness/parity/gradient_check.h"
#include "harness/parity/perturbed_inputs.h"
#include "src/common/error.h"

namespace twinbench {

namespace {

// Empty, or why these inputs are no case: the baseline itself would not pass.
std::string fails_itself(const Reference& reference) {
  CheckResult control;
  reference.judge(reference.baseline(), control);
  return control.reason;
}

}  // namespace

SharedCase::SharedCase(const Component& component, const Setting& setting, std::uint64_t seed,
                       std::shared_ptr<OracleCache> oracles)
    : component_(component),
      setting_(setting),
      seed_(seed),
      oracles_(std::move(oracles)),
      generated_(generated_inputs(component.spec, setting, seed)),
      reference_(component, setting, generated_, *oracles_) {}

std::int64_t SharedCase::elements() const {
  std::int64_t elements = 0;
  for (const auto* tensors : {&generated_, &reference_.oracle()})
    for (const auto& [name, tensor] : *tensors) elements += tensor.defined() ? tensor.numel() : 0;
  return elements;
}

const NamedTensors& SharedCase::other_inputs() {
  if (!other_) other_ = generated_inputs(component_.spec, setting_, seed_ + 1);
  return *other_;
}

const SharedCase::Changed& SharedCase::changed(const std::set<std::string>& names) {
  std::unique_ptr<Changed>& changed = changed_[names];
  if (!changed) {
    NamedTensors inputs = generated_;
    for (const auto& name : names) inputs.set(name, other_inputs()[name]);
    Reference reference(component_, setting_, inputs, *oracles_);
    std::string why = fails_itself(reference);
    changed = std::make_unique<Changed>(Changed{std::move(inputs), std::move(reference), std::move(why)});
  }
  return *changed;
}

const SharedCase::Changed& SharedCase::perturbed() {
  if (!perturbed_) {
    const auto with = [&](NamedTensors inputs, const std::string& why) {
      Reference reference(component_, setting_, inputs, *oracles_);
      const std::string broken = why.empty() ? fails_itself(reference) : why;
      perturbed_ = std::make_unique<Changed>(Changed{std::move(inputs), std::move(reference), broken});
    };
    try {
      with(perturbed_inputs(component_.spec, setting_, generated_, seed_), "");
    } catch (const Error& refusal) {  // these values are none that the component takes
      with(generated_, refusal.what());
    }
  }
  return *perturbed_;
}

const SharedCase::Changed* SharedCase::turned() {
  if (turned_ || !turns_) return turned_.get();
  turns_ = false;
  NamedTensors inputs = turned_inputs(component_.spec, setting_, generated_, other_inputs());
  if (inputs.empty()) return nullptr;
  try {
    Reference reference(component_, setting_, inputs, *oracles_);
    std::string why = fails_itself(reference);
    turned_ = std::make_unique<Changed>(Changed{std::move(inputs), std::move(reference), std::move(why)});
  } catch (const std::exception&) {  // a table that names items by their places: these values are none
  }
  return turned_.get();
}

std::string SharedCase::no_case() const {
  if (vacuity_ && !vacuity_->reason.empty()) return vacuity_->reason;
  if (auto why = reference_.no_case(); !why.empty()) return why;
  if (perturbed_ && perturbed_->no_case.empty())
    if (const auto why = perturbed_->reference.no_case(); !why.empty()) return "with every input changed: " + why;
  if (turned_ && turned_->no_case.empty())
    if (const auto why = turned_->reference.no_case(); !why.empty()) return "with its items in other places: " + why;
  for (const auto& [names, changed] : changed_)
    if (changed->no_case.empty())
      if (const auto why = changed->reference.no_case(); !why.empty()) return "with other inputs: " + why;
  return "";
}

const CheckResult& SharedCase::vacuity() {
  if (!vacuity_) {
    CheckResult result;
    reference_.check_vacuity(placed_inputs(generated_, setting_.dtype, setting_.device), result);
    vacuity_ = std::move(result);
  }
  return *vacuity_;
}

const CheckResult& SharedCase::gradient(const ParityOptions& options) {
  return oracles_->judged(setting_, generated_, [&] {
    CheckResult result;
    check_gradient(component_, setting_, generated_, oracles_->exact(component_, setting_, generated_), options,
                   result);
    return result;
  });
}

SharedCase& SharedCases::of(const Component& component, const Setting& setting, std::uint64_t seed) {
  const Cell cell{&component, Variant::kBaseline, setting.device, setting.dtype, &setting.input_case};
  const std::string cell_key = cell.name() + " " + std::to_string(seed);
  const std::string case_key = component.spec.id() + "/" + setting.input_case.name + " " + std::to_string(seed);
  if (shared_ && cell_key == cell_key_) return *shared_;
  shared_.reset();
  if (!oracles_ || case_key != case_key_) oracles_ = std::make_shared<OracleCache>();
  case_key_ = case_key;
  shared_ = std::make_unique<SharedCase>(component, setting, seed, oracles_);
  cell_key_ = cell_key;
  return *shared_;
}

}  // namespace twinbench
