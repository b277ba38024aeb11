// Checks that run the candidate again: the same bits, untouched inputs, guarded memory, strides, changed contents.
#include <ATen/ThreadLocalState.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <limits>

#include "harness/memory/device_only.h"
#include "harness/memory/guarded_tensor.h"
#include "harness/memory/paged_inputs.h"
#include "harness/memory/tensor_hash.h"
#include "harness/memory/tracked_allocator.h"
#include "harness/parity/subject.h"
#include "harness/timing/processor_time.h"
#include "src/common/error.h"

namespace twinbench {

// With the caller's modes: gradients on or off belong to a thread.
Prepared Subject::prepared_elsewhere() const {
  const at::ThreadLocalState modes;
  return std::async(std::launch::async,
                    [&] {
                      const at::ThreadLocalStateGuard same_modes(modes);
                      return prepare(placed());
                    })
      .get();
}

namespace {

// What comes after many runs alone, where a run is short: as many as a moment of work holds, looked at behind the last.
// By processor time, that a busy machine may not make them few; runs that wait are ended by the clock.
void run_many_times(Subject& subject) {
  constexpr double kWork_s = 5e-3;
  constexpr std::chrono::milliseconds kWait(100);
  constexpr int kMostRuns = 300;
  const double start = processor_seconds();
  const auto end = std::chrono::steady_clock::now() + kWait;
  const auto goes_on = [&] { return processor_seconds() - start < kWork_s && std::chrono::steady_clock::now() < end; };
  for (int run = 0; run < kMostRuns && goes_on(); ++run) subject.run_again(1);
}

}  // namespace

void check_determinism(Subject& subject, CheckResult& result) {
  const auto start = std::chrono::steady_clock::now();
  const auto differs = [&] {
    const NamedTensors outputs = copied_outputs(subject.run_again(1));
    for (const std::string& different : {subject.difference(outputs), subject.count_difference(outputs)})
      if (!different.empty()) {
        result.fail("run " + std::to_string(subject.repeats) +
                    " of the same runnable differs from a first run in the bits of " + different);
        return true;
      }
    return false;
  };
  for (int run = 1; run <= subject.options.repeats; ++run) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (run > 2 && seconds > subject.options.repeat_seconds) return;
    if (differs()) return;
  }
  run_many_times(subject);
  differs();
}

void check_input_mutation(Subject& subject, CheckResult& result) {
  subject.run_again(std::max(0, 2 - subject.repeats)).outputs();
  const NamedTensors before = subject.placed();
  for (const auto& [name, tensor] : subject.repeated.inputs)
    if (hash_of(tensor) != hash_of(before[name])) return result.fail("input '" + name + "' was changed");
}

namespace {

// Outside the CPU the allocator is not ours: the inputs lie between bands instead.
void check_guarded_inputs(const Subject& subject, CheckResult& result) {
  std::vector<std::pair<std::string, GuardedTensor>> guarded;
  NamedTensors inputs;
  for (const auto& [name, tensor] : subject.placed()) {
    guarded.emplace_back(name, GuardedTensor(tensor));
    inputs.set(name, guarded.back().second.tensor());
  }
  const Prepared prepared = subject.prepare(inputs);
  run_afresh(*prepared.runnable);
  const std::string different = subject.difference(copied_outputs(*prepared.runnable));
  if (!different.empty())
    result.fail("NaN around the inputs changes the bits of " + different + ": it reads beyond them");
  for (const auto& [name, tensor] : guarded)
    if (const std::string broken = tensor.broken(); !broken.empty()) result.fail("input '" + name + "': " + broken);
}

// A read past an input's end changes no bit where what it gives is not used: a page that nobody may touch sees it too.
void check_paged_inputs(const Subject& subject, CheckResult& result) {
  for (const auto edge : {PagedInputs::Edge::kEnd, PagedInputs::Edge::kStart}) {
    PagedInputs paged(subject.placed(), edge);
    const Prepared prepared = subject.prepare(paged.tensors());
    run_afresh(*prepared.runnable);
    const NamedTensors outputs = copied_outputs(*prepared.runnable);
    if (const std::string touched = paged.touched(); !touched.empty()) return result.fail(touched);
    CheckResult judged;
    subject.reference.judge(outputs, judged);  // another alignment: an operator of LibTorch may give other bits
    if (judged.verdict == CheckVerdict::kFail) return result.fail_as(judged, "inputs at the edge of a page");
  }
}

// Empty, or what of its device's memory the host follows a pointer to, in a run and its outputs.
std::string touched_by_host(const Prepared& prepared) {
  const DeviceOnly device_only;
  run_afresh(*prepared.runnable);
  prepared.runnable->outputs();
  return device_only.touched(prepared.inputs);
}

}  // namespace

void check_guard_bands(const Subject& subject, CheckResult& result) {
  if (subject.setting.device.is_cuda()) return check_guarded_inputs(subject, result);
  TrackedAllocator::instance();
  // Where a comparison alone fails, which on inputs that are no case says nothing, the bands are still looked at.
  CheckResult edges;
  if (subject.setting.device.is_cpu()) check_paged_inputs(subject, edges);
  const bool failed = edges.verdict == CheckVerdict::kFail;
  if (failed && !edges.in_comparison) return result.fail(edges.reason);
  NamedTensors outputs;
  {
    GuardScope guard(subject.setting.device.is_simt() ? Guard::kPages : Guard::kBands);
    {
      const Prepared prepared = subject.prepare(subject.placed());
      if (subject.setting.device.is_simt())
        if (const std::string touched = touched_by_host(prepared); !touched.empty()) return result.fail(touched);
      run_afresh(*prepared.runnable);
      if (!subject.setting.device.is_simt()) run_afresh(*prepared.runnable);
      outputs = copied_outputs(*prepared.runnable);
    }
    const auto violations = guard.violations();
    if (!violations.empty())
      result.fail(violations.front().text() +
                  (violations.size() > 1 ? "; " + std::to_string(violations.size()) + " bands in all" : ""));
  }
  const std::string different = subject.difference(outputs);
  if (!different.empty())
    result.fail("0xff in fresh memory and in the bands changes the bits of " + different +
                ": it reads what it did not write");
  if (failed) result.fail_comparison(edges.reason);
}

namespace {

enum class Strides { kRowsApart, kEverySecond };

// Part of a wider tensor: the same values, where no kernel may expect them. Rows that lie apart have a last stride of 1
// and are not contiguous all the same.
at::Tensor strided_copy(const at::Tensor& tensor, Strides strides) {
  if (tensor.dim() == 0 || tensor.numel() < 2) return tensor;
  auto sizes = tensor.sizes().vec();
  sizes.back() *= 2;
  at::Tensor wide = at::empty(sizes, tensor.options());
  tensor.is_floating_point() || tensor.is_complex() ? wide.fill_(std::numeric_limits<double>::quiet_NaN())
                                                    : wide.fill_(1);
  const at::Tensor part =
      strides == Strides::kEverySecond ? wide.slice(-1, 0, std::nullopt, 2) : wide.narrow(-1, 1, tensor.size(-1));
  return part.copy_(tensor);
}

// The answer to strided inputs. Autograd gives a gradient its input's strides: only the values are judged.
void judge_strided(const Subject& subject, Strides strides, CheckResult& result) {
  NamedTensors inputs;
  for (const auto& [name, tensor] : subject.placed()) inputs.set(name, strided_copy(tensor, strides));
  try {
    const Prepared prepared = subject.prepare(inputs);
    run_afresh(*prepared.runnable);
    NamedTensors outputs;
    for (const auto& [name, tensor] : prepared.runnable->outputs()) outputs.set(name, tensor.contiguous());
    subject.reference.judge(outputs, result);
  } catch (const Error& error) {
    result.skip(std::string("refuses strided inputs: ") + error.what());
  }
}

}  // namespace

void check_non_contiguous(const Subject& subject, CheckResult& result) {
  CheckResult rows_apart;
  judge_strided(subject, Strides::kRowsApart, rows_apart);
  judge_strided(subject, Strides::kEverySecond, result);
  if (rows_apart.verdict == CheckVerdict::kFail && result.verdict != CheckVerdict::kFail)
    result.fail_as(rows_apart, "rows that lie apart");
}

namespace {

// The candidate set up on the original inputs, run unless told otherwise, its inputs overwritten by `changed` in place,
// run again.
NamedTensors outputs_after_change(const Subject& subject, const NamedTensors& changed, bool run_first = true) {
  const Prepared prepared = subject.prepare(subject.placed());
  if (run_first) run_afresh(*prepared.runnable);
  overwrite_inputs(prepared.inputs, changed, subject.setting);
  run_afresh(*prepared.runnable);
  return copied_outputs(*prepared.runnable);
}

// The same, and then once more on the original inputs: of the two changes one makes the work less, where it can vary,
// so that what a larger run has left behind is seen.
struct ThereAndBack {
  NamedTensors there, back;
};

ThereAndBack there_and_back(const Subject& subject, const NamedTensors& changed) {
  const Prepared prepared = subject.prepare(subject.placed());
  const auto on = [&](const NamedTensors& inputs) {
    overwrite_inputs(prepared.inputs, inputs, subject.setting);
    run_afresh(*prepared.runnable);
    return copied_outputs(*prepared.runnable);
  };
  run_afresh(*prepared.runnable);
  NamedTensors there = on(changed);
  return {std::move(there), on(subject.generated)};
}

// Tables that every seed makes alike change where the items change places: nothing of a run may stay with a place. What
// is the same without that run comes from set-up, which may copy a table.
void check_changed_places(const Subject& subject, CheckResult& result) {
  const auto* turned = subject.shared.turned();
  if (turned == nullptr || !turned->no_case.empty()) return;
  const NamedTensors outputs = outputs_after_change(subject, turned->generated);
  CheckResult judged;
  turned->reference.judge(outputs, judged);
  if (judged.verdict == CheckVerdict::kPass) return;
  const auto& specs = subject.outputs_declared();
  const NamedTensors of_setup = outputs_after_change(subject, turned->generated, false);
  if (!first_bit_difference(without_measured(specs, of_setup), without_measured(specs, outputs)).empty())
    result.fail_as(judged, "after its items changed places, the same runnable");
}

// Where the same runnable does not follow its changed batched inputs: which of them its setup has copied, and what else
// is wrong when one changes alone.
void name_what_is_kept(const Subject& subject, CheckResult& result) {
  std::string taken;
  for (const auto& [name, tensor] : subject.shared.other_inputs()) {
    if (!is_read_by_run(subject, name)) continue;
    const auto& changed = subject.shared.changed({name});
    if (!changed.no_case.empty()) continue;
    const NamedTensors outputs = outputs_after_change(subject, changed.generated);
    CheckResult followed;
    changed.reference.judge(outputs, followed);
    if (followed.verdict == CheckVerdict::kPass) continue;
    if (subject.difference(outputs).empty())
      taken += (taken.empty() ? "'" : ", '") + name + "'";
    else
      result.fail_as(followed, "after input '" + name + "' changed, the same runnable");
  }
  if (!taken.empty())
    result.fail("the same runnable does not follow its input " + taken + ": its setup copies what run() must read");
}

}  // namespace

void check_stale(const Subject& subject, CheckResult& result) {
  const NamedTensors& other = subject.shared.other_inputs();
  // With batched inputs, weights stay: a variant may prepare them in its setup. Without, everything changes and only a
  // fresh runnable must follow.
  std::set<std::string> names;
  bool batched = false, any = false;
  for (const auto& [name, tensor] : other) batched = batched || is_read_by_run(subject, name);
  for (const auto& [name, tensor] : other) {
    if (batched && !is_read_by_run(subject, name)) continue;
    if (!subject.generated.contains(name) || subject.generated[name].sizes() != tensor.sizes())
      return result.skip("input '" + name + "' has another shape under another seed");
    any = any || hash_of(tensor) != hash_of(subject.generated[name]);
    names.insert(name);
  }
  if (!any) {
    check_changed_places(subject, result);
    if (result.verdict == CheckVerdict::kPass) result.skip("another seed gives the same inputs");
    return;
  }
  const auto& changed = subject.shared.changed(names);
  if (!changed.no_case.empty()) return result.skip("with other inputs: " + changed.no_case);
  if (batched) {
    CheckResult same_runnable;
    const ThereAndBack outputs = there_and_back(subject, changed.generated);
    changed.reference.judge(outputs.there, same_runnable);
    if (same_runnable.verdict != CheckVerdict::kPass) {
      name_what_is_kept(subject, result);
      if (result.verdict == CheckVerdict::kPass)
        result.fail_as(same_runnable, "after its batched inputs changed, the same runnable");
      return;
    }
    const std::string difference = subject.difference(outputs.back);
    if (!difference.empty())
      return result.fail("after its batched inputs changed and changed back, the same runnable: " + difference);
    if (const std::string counts = subject.count_difference(outputs.back); !counts.empty())
      return result.fail("what the same runnable counts of its work hangs on earlier inputs: " + counts);
    const std::string broken = broken_invariants(subject, outputs.back);  // measured outputs too
    if (!broken.empty())
      return result.fail("after its batched inputs changed and changed back, the same runnable: " + broken);
    check_changed_places(subject, result);
    if (result.verdict != CheckVerdict::kPass) return;
  }
  const Prepared prepared = subject.prepare(subject.placed());
  run_afresh(*prepared.runnable);
  overwrite_inputs(prepared.inputs, changed.generated, subject.setting);
  const Prepared fresh = subject.prepare(prepared.inputs);
  run_afresh(*fresh.runnable);
  changed.reference.judge(fresh.runnable->outputs(), result);
  if (result.verdict == CheckVerdict::kFail)
    result.reason = "a fresh runnable on changed contents at the same addresses: " + result.reason;
}

}  // namespace twinbench
