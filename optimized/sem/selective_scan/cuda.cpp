// Optimized sem.selective_scan on CUDA: one kernel, two where few groups are cut into chunks; backward four. 0 reads.
#include <ATen/ATen.h>

#include <algorithm>
#include <string>

#include "kernels/sem/selective_scan/arguments.h"
#include "optimized/common/cuda.h"
#include "src/sem/common/scan_limits.h"

namespace twinbench::sem::selective_scan {
namespace {

class CudaScan final : public Runnable {
 public:
  CudaScan(const NamedTensors& inputs, const Setting& setting) : results_(zero_results(setting)) {
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
    arguments_ = {.shape = shape,
                  .chunk = chunk,
                  .chunks = chunks,
                  .input = data<float>(inputs_["input"]),
                  .a_raw = data<float>(inputs_["a_raw"]),
                  .a_phase = data<float>(inputs_["a_phase"]),
                  .input_projection = data<float>(inputs_["input_projection"]),
                  .output_projection = data<float>(inputs_["output_projection"]),
                  .dt_weight = data<float>(inputs_["dt_weight"]),
                  .dt_bias = data<float>(inputs_["dt_bias"])};
    setting.backward() ? prepare_backward() : prepare_forward();
  }

  void run() override {
    if (arguments_.shape.items() == 0 || arguments_.shape.steps == 0) return;
    if (backward_.grad_output != nullptr)
      launch_backward(backward_, stream());
    else
      launch_scan(arguments_, stream());
  }

  NamedTensors outputs() override { return results_; }

 private:
  void prepare_forward() {
    const Shape& shape = arguments_.shape;
    const int chunks = arguments_.chunks;
    const auto floats = inputs_["input"].options();
    ends_ = at::empty({chunks > 1 ? shape.items() : 0, chunks, 4, shape.states}, floats);
    largest_ = at::empty({shape.items(), chunks}, floats);
    finished_ = at::zeros({shape.batch}, floats.dtype(at::kInt));
    arguments_.output = data<float>(results_["output"]);
    arguments_.largest_state = data<float>(results_["largest_state"]);
    arguments_.ends = data<float>(ends_);
    arguments_.largest = data<float>(largest_);
    arguments_.finished = reinterpret_cast<unsigned*>(data<std::int32_t>(finished_));
  }

  void prepare_backward() {
    const Shape& shape = arguments_.shape;
    const auto floats = inputs_["input"].options();
    const std::int64_t stride = (shared_size(shape) + 7) / 8 * 8;  // whole sectors
    starts_ = at::empty({shape.items(), shape.tiles(), 2, shape.states}, floats);
    of_decays_ = at::empty({shape.batch, 2, shape.groups, shape.states}, floats);
    of_shared_ = at::zeros({shape.items(), stride}, floats);
    decay_sums_ = at::zeros({2, shape.groups, shape.states}, floats);
    shared_sums_ = at::zeros({stride}, floats);
    results_.set("grad_a_raw", decay_sums_.select(0, 0));
    results_.set("grad_a_phase", decay_sums_.select(0, 1));
    std::int64_t from = 0;
    for (const char* name : {"input_projection", "output_projection", "dt_weight", "dt_bias"}) {
      const at::Tensor& parameter = inputs_[name];
      results_.set(std::string("grad_") + name,
                   shared_sums_.narrow(0, from, parameter.numel()).view(parameter.sizes()));
      from += parameter.numel();
    }
    arguments_.chunk = std::max(shape.steps, 1), arguments_.chunks = 1;
    arguments_.starts = data<float>(starts_);
    backward_.scan = arguments_;
    backward_.grad_output = data<float>(inputs_["grad_output"]);
    backward_.grad_input = data<float>(results_["grad_input"]);
    backward_.of_decays = data<float>(of_decays_);
    backward_.of_shared = data<float>(of_shared_);
    backward_.shared_stride = static_cast<std::int32_t>(stride);
    backward_.decay_sums = data<float>(decay_sums_);
    backward_.shared_sums = data<float>(shared_sums_);
  }

  NamedTensors inputs_, results_;
  at::Tensor ends_, largest_, finished_;                                  // forward
  at::Tensor starts_, of_decays_, of_shared_, decay_sums_, shared_sums_;  // backward
  ScanArguments arguments_;
  BackwardArguments backward_;
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaScan>(inputs, setting);
}

}  // namespace twinbench::sem::selective_scan
