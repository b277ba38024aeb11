// Parity on simt: the CUDA path's answers are judged on the host, and what a kernel does wrong fails the cell by name.
#define TWINBENCH_SIMT
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "harness/compare/inputs.h"
#include "harness/parity/parity.h"
#include "harness/parity/reference.h"
#include "harness/simt/host_launch.h"
#include "src/common/error.h"
#include "src/common/sanitized.h"
#include "src/make_runnable.h"

namespace twinbench {
namespace {

const Cell& odd_cell() {
  static const Cell cell = find_cell("energy_flow.simple_neuron/optimized/simt/fp32/odd");
  return cell;
}

// One thread that reads the element at `at`.
struct ReadOne {
  static constexpr int kMaxThreads = 1;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block&, const float* values, std::int64_t at, float* out) const {
    *out = values[at];
  }
};

// All threads write one element of shared memory.
struct Race {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, float* out) const {
    auto one = kernels::simt::shared_array<float, 1>(block);
    one[0] = static_cast<float>(block.thread().x);
    block.barrier();
    if (block.thread().x == 0) *out = one[0];
  }
};

enum class Planted { kNothing, kReadPastTheEnd, kNullPointer, kRace, kTooManyThreads, kDefaultStream };
Planted g_planted = Planted::kNothing;

// The component's own path with a planted launch behind it.
class PlantedPath final : public Runnable {
 public:
  PlantedPath(const NamedTensors& inputs, const Setting& setting)
      : path_(odd_cell().component->optimized_simt(inputs, setting)), position_(inputs["position"].contiguous()) {}
  void run() override {
    path_->run();
    kernels::Stream stream = kernels::current_host_stream();
    const kernels::simt::RunScope on(stream);
    const float* const values = position_.const_data_ptr<float>();
    const std::int64_t count = position_.numel();
    using kernels::simt::launch;
    switch (g_planted) {
      case Planted::kNothing: launch(ReadOne{}, 1, 1, 0, stream, values, count - 1, &out_); break;
      // 16 bytes on: the end of the tensor is aligned to that.
      case Planted::kReadPastTheEnd: launch(ReadOne{}, 1, 1, 0, stream, values, count + 4, &out_); break;
      case Planted::kNullPointer:
        launch(ReadOne{}, 1, 1, 0, stream, static_cast<const float*>(nullptr), std::int64_t{0}, &out_);
        break;
      case Planted::kRace: launch(Race{}, 1, 64, 0, stream, &out_); break;
      case Planted::kTooManyThreads: launch(Race{}, 1, 65, 0, stream, &out_); break;
      case Planted::kDefaultStream: launch(Race{}, 1, 64, 0, kernels::Stream{nullptr}, &out_); break;
    }
  }
  NamedTensors outputs() override { return path_->outputs(); }

 private:
  std::unique_ptr<Runnable> path_;
  at::Tensor position_;
  float out_ = 0;
};

CheckResult oracle_row(Planted planted) {
  g_planted = planted;
  Component component = *odd_cell().component;
  component.optimized_simt = make<PlantedPath>;
  ParityOptions options;
  options.checks = {"oracle"};
  const auto rows = check_cell(component, Variant::kOptimized, odd_cell().setting(), 1, options);
  EXPECT_EQ(rows.size(), 1u);
  return rows.front();
}

TEST(SimtCell, TheCudaPathIsJudgedOnTheHostInAllChecks) {
  ParityOptions options;
  options.repeats = 3;
  for (const auto& row : check_cell(*odd_cell().component, Variant::kOptimized, odd_cell().setting(), 1, options))
    EXPECT_TRUE(row.verdict == CheckVerdict::kPass || row.verdict == CheckVerdict::kSkip)
        << row.check << ": " << row.reason;
  EXPECT_EQ(oracle_row(Planted::kNothing).verdict, CheckVerdict::kPass);
}

TEST(SimtCell, WhatAKernelDoesWrongFailsItByName) {
  for (const auto& [planted, words] : {std::pair{Planted::kReadPastTheEnd, "reads outside tensor memory"},
                                       {Planted::kNullPointer, "pointer is 'null + 0'"},
                                       {Planted::kRace, "race in"},
                                       {Planted::kTooManyThreads, "bad_launch"},
                                       {Planted::kDefaultStream, "the default stream"}}) {
    if (kSanitized && planted == Planted::kNullPointer) continue;  // the sanitizer ends the process for it
    const CheckResult row = oracle_row(planted);
    EXPECT_EQ(row.verdict, CheckVerdict::kError);
    EXPECT_NE(row.reason.find(words), std::string::npos) << row.reason;
  }
}

// The same values, starting where no vector of a card may: one element behind an aligned address.
NamedTensors shifted(const NamedTensors& inputs) {
  NamedTensors moved;
  for (const auto& [name, tensor] : inputs) {
    const at::Tensor behind = at::empty({tensor.numel() + 1}, tensor.options()).narrow(0, 1, tensor.numel());
    moved.set(name, behind.view(tensor.sizes()).copy_(tensor));
  }
  return moved;
}

TEST(SimtCell, InputsMayStartAnywhere) {
  std::set<const Component*> seen;
  for (const auto& cell : all_cells()) {
    if (!cell.device.is_simt() || cell.input_case->timed || cell.input_case->degenerate) continue;
    if (cell.input_case->name != "heads_of_fours" && !seen.insert(cell.component).second) continue;
    const Setting setting = cell.setting();
    const NamedTensors generated = generated_inputs(cell.component->spec, setting, 1);
    const Reference reference(*cell.component, setting, generated);
    CheckResult result;
    try {
      const auto inputs = shifted(placed_inputs(generated, setting.dtype, setting.device));
      const auto runnable = cell.component->make(cell.variant, inputs, setting);
      run_afresh(*runnable);
      reference.judge(copied_outputs(*runnable), result);
      EXPECT_EQ(result.reason, "") << cell.name();
    } catch (const std::exception& error) {
      ADD_FAILURE() << cell.name() << ": " << error.what();
    }
  }
  EXPECT_GT(seen.size(), 10u);
}

TEST(SimtCell, InputsOfAnotherDeviceAndOtherVariantsAreRefused) {
  const Component& component = *odd_cell().component;
  EXPECT_FALSE(component.supports(Variant::kBaseline, Device::simt(), Dtype::kFp32));
  EXPECT_TRUE(component.supports(Variant::kOptimized, Device::simt(), Dtype::kFp32));
  EXPECT_FALSE(find_component("energy_flow.collation").supports(Variant::kOptimized, Device::simt(), Dtype::kFp32));
  int simt = 0;
  std::set<const Component*> found;
  for (const auto& cell : all_cells())
    if (cell.device.is_simt()) {
      ++simt;
      EXPECT_EQ(cell.variant, Variant::kOptimized);
      if (!found.insert(cell.component).second) continue;  // a search by name walks through all cells
      EXPECT_EQ(find_cell(cell.name()).name(), cell.name());
    }
  EXPECT_GT(simt, 100);
}

}  // namespace
}  // namespace twinbench
