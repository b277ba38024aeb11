// Optimized sem.selective_scan on CUDA: one kernel, two where few groups are cut into chunks; 0 reads.
#include <ATen/ATen.h>

#include "kernels/sem/selective_scan/arguments.h"
#include "optimized/common/cuda.h"
#include "src/sem/common/scan_limits.h"

namespace twinbench::sem::selective_scan {
namespace {

class CudaScan final : public Runnable {
 public:
  CudaScan(const NamedTensors& inputs, const Setting& setting) : results_(zero_results(setting)) {
    check_phases(inputs["a_phase"]);
    for (const InputSpec& input : inputs_of(*setting.signature, setting))
      inputs_.set(input.name, inputs[input.name].contiguous());
    const auto size = [&](const char* name) { return static_cast<int>(setting.size(name)); };
    const Shape shape{.batch = size("batch"),
                      .steps = size("steps"),
                      .groups = size("groups"),
                      .width = size("width"),
                      .states = size("states")};
    const auto given = static_cast<int>(setting.option("chunk"));
    const int chunk = given > 0 ? given : chunk_of(shape);
    const int chunks = static_cast<int>(kernels::blocks_of(shape.steps, chunk));
    const auto floats = inputs_["input"].options();
    ends_ = at::empty({chunks > 1 ? shape.items() : 0, chunks, 4, shape.states}, floats);
    largest_ = at::empty({shape.items(), chunks}, floats);
    finished_ = at::zeros({shape.batch}, floats.dtype(at::kInt));
    arguments_ = {.shape = shape,
                  .chunk = chunk,
                  .chunks = chunks,
                  .input = data<float>(inputs_["input"]),
                  .a_raw = data<float>(inputs_["a_raw"]),
                  .a_phase = data<float>(inputs_["a_phase"]),
                  .input_projection = data<float>(inputs_["input_projection"]),
                  .output_projection = data<float>(inputs_["output_projection"]),
                  .dt_weight = data<float>(inputs_["dt_weight"]),
                  .dt_bias = data<float>(inputs_["dt_bias"]),
                  .output = data<float>(results_["output"]),
                  .largest_state = data<float>(results_["largest_state"]),
                  .ends = data<float>(ends_),
                  .largest = data<float>(largest_),
                  .finished = reinterpret_cast<unsigned*>(data<std::int32_t>(finished_))};
  }

  void run() override {
    if (arguments_.shape.items() > 0 && arguments_.shape.steps > 0) launch_scan(arguments_, stream());
  }

  NamedTensors outputs() override { return results_; }

 private:
  NamedTensors inputs_, results_;
  at::Tensor ends_, largest_, finished_;
  ScanArguments arguments_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaScan>(inputs, setting);
}

}  // namespace twinbench::sem::selective_scan
