// What a factory, a generator or a formula is told beside the tensors: the case, its sizes and options, mode and
// device.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <string>

#include "src/device.h"

namespace twinbench {

struct Signature;

// What a cell's <dtype> means: the numeric mode of the specifications. Floating inputs are fp32 tensors in every mode
// but kFp64 (the oracle; baselines only). kBf16: both operands of every matrix product are rounded to bf16 (nearest,
// ties to even), products are accumulated and returned in fp32, and all else stays fp32. kTf32: the same with TF32's 10
// mantissa bits, where the hardware rounds. kFp16: the tensors that the component's specification lists are held in
// half precision inside the component.
enum class Dtype { kFp64, kFp32, kBf16, kTf32, kFp16 };

enum class Pass { kForward, kBackward };

using Sizes = std::map<std::string, std::int64_t>;  // {"flows": 256, "hidden": 512}
using Options = std::map<std::string, double>;      // {"noise": 0.05}: settings, switches (0 or 1), a choice's index

// A named input set. Backward cases get the forward inputs plus grad_<output>, and return grad_<input>.
struct Case {
  std::string name;  // tiny, odd, train, stress, ...: a role, not a size
  Sizes sizes;
  Options options;
  std::string distribution = "normal";  // of the case's data: one of draws::distributions()
  Pass pass = Pass::kForward;
  bool degenerate = false;  // the right answer is constant or empty: exempt from the vacuity guard
  bool fixed = false;       // what it is about is lost at other sizes: none are drawn from it
  bool timed = false;       // measured by `twinbench bench`; the others are parity and counter cases
  // A switch that makes the baseline compute a documented wrong answer. Only the baseline runs such a case, and parity
  // passes when the comparer rejects it against the oracle without the switch.
  std::string specimen = {};
};

// Complete (every size, derived size and option is there) once a component has made it: Cell::setting, Component::make.
struct Setting {
  Case input_case;  // with any sizes overridden on the command line
  Dtype dtype = Dtype::kFp32;
  Device device;
  const Signature* signature = nullptr;  // of the component, while that lives
  // Of the oracle, whose dtype is kFp64: the mode whose roundings it carries out, all else being fp64. kFp64: none.
  Dtype rounding = Dtype::kFp64;

  std::int64_t size(const std::string& name) const;  // throws kUnknownName
  double option(const std::string& name) const;      // throws kUnknownName
  bool on(const std::string& name) const { return option(name) != 0; }
  Dtype rounds_as() const { return dtype == Dtype::kFp64 ? rounding : dtype; }  // what a baseline rounds by
  bool backward() const { return input_case.pass == Pass::kBackward; }
};

// What floating tensors are in a mode.
inline at::ScalarType floating_type(Dtype dtype) { return dtype == Dtype::kFp64 ? at::kDouble : at::kFloat; }

std::string to_string(Dtype dtype);  // fp64, fp32, bf16, tf32, fp16
std::string to_string(Pass pass);    // forward, backward

}  // namespace twinbench
