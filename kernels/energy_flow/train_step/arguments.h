// Arguments and launchers of the training step's own kernels (C24): what lies between mapper, flows, losses and
// optimizer, so that a window needs nothing of the host. No CUDA headers: optimized/ stays host-compiled.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/pack_element.h"
#include "kernels/energy_flow/common/window_texts_arguments.h"
#include "kernels/energy_flow/train_step/math.h"

namespace twinbench::energy_flow::train_step {

// What a window gathers; on the device.
struct alignas(16) WindowState {
  double loss_sum = 0, loss_rows = 0;       // of micro-steps with a finite loss, a share a row
  std::int64_t contributed = 0;             // such micro-steps
  std::int32_t skipped = 0, sanitised = 0;  // micro-steps without one; rows that were not fit
};

// The window's first kernel: state and sums are zeros, each micro-step's gradient has its factor, and displacements
// the scale that is due.
struct BeginArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  WindowState* state = nullptr;
  float* sums = nullptr;  // [count]
  std::int64_t count = 0, micro_steps = 0;
  const float* shares = nullptr;                 // [micro_steps], without the loss scale
  const std::int64_t* exponent = nullptr;        // of the loss scale; null: there is none
  float *upstream = nullptr, *losses = nullptr;  // [micro_steps]
  const std::int64_t* applied = nullptr;         // [1]: windows before this one
  const float* scales = nullptr;                 // [last_scale + 1]
  std::int64_t last_scale = 0;
  float* scale = nullptr;           // [1]
  std::int64_t* anomaly = nullptr;  // [2], becomes -1 and -1
};
void launch_begin(const BeginArguments& arguments, kernels::Stream stream);

// Rows of inputs and of targets to where the mapper takes them, made fit.
struct StageArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const float *input = nullptr, *target = nullptr;  // [rows, width]
  float *to_input = nullptr, *to_target = nullptr;  // likewise
  std::int64_t rows = 0, width = 0;
  bool sanitises = true;
  std::int32_t* sanitised = nullptr;  // [1]: of the window
};
void launch_stage(const StageArguments& arguments, kernels::Stream stream);

// Whether a stage's results are all numbers; the first stage of a window where they are not is noted.
struct InspectArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const float* values = nullptr;  // [count]
  std::int64_t count = 0, micro_step = 0, stage = 0;
  std::int64_t* anomaly = nullptr;  // [2]: micro-step and stage; less than 0: none yet
};
void launch_inspect(const InspectArguments& arguments, kernels::Stream stream);

// A micro-step's gradients to the window's, or nothing where its loss is no number.
struct AccumulateArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const float *gradients = nullptr, *of_texts = nullptr;  // [count], [text_count]
  float* sums = nullptr;                                  // [count + text_count]
  std::int64_t count = 0, text_count = 0, rows = 0;
  const float* loss = nullptr;           // [1]
  const std::int64_t* finite = nullptr;  // [1]
  WindowState* state = nullptr;
};
void launch_accumulate(const AccumulateArguments& arguments, kernels::Stream stream);

// The sums in the arena's order; what the optimizer is told of the window.
struct GatherArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const float* sums = nullptr;
  const std::int32_t* places = nullptr;  // [count]: from 1 on; 0: no gradient
  float* gradients = nullptr;            // [count]
  std::int64_t count = 0;
  const WindowState* state = nullptr;
  double rescaling = 1;
  const std::int64_t* exponent = nullptr;    // as above
  float *factor = nullptr, *loss = nullptr;  // [1]
};
void launch_gather(const GatherArguments& arguments, kernels::Stream stream);

// Neighbouring elements of a pack.
struct PackPiece {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  float* to = nullptr;
  const std::int32_t *first = nullptr, *second = nullptr;  // as PackSource has them; second: may be null
  std::int64_t count = 0;
};
constexpr std::int64_t kPackPiece = 2048;  // elements

// The window's last kernel: packs from parameters that have moved, the counts, the record.
struct RenewArguments {
  kernels::DesignatedOnly designated = kernels::DesignatedOnly();
  const PackPiece* pieces = nullptr;  // [count]
  std::int64_t count = 0;
  const float* arena = nullptr;
  const WindowState* state = nullptr;
  const std::int64_t* status = nullptr;  // the optimizer's, [1]
  // [5]: applied, skipped, attempts, exponent, good steps; the first two are the optimizer's.
  std::int64_t* counts = nullptr;
  std::int64_t* record = nullptr;  // [2]: skipped micro-steps, sanitised rows
  std::int64_t good_windows = 0;   // after which the loss scale doubles
};
void launch_renew(const RenewArguments& arguments, kernels::Stream stream);

}  // namespace twinbench::energy_flow::train_step
