// For tests only: the simulated device under the bench engine, with tensors on the CPU and planted components over it.
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/device/bench/bench_device.h"
#include "harness/device/simulated_device.h"
#include "src/registry.h"

namespace twinbench {

struct SimulatedBenchFaults {
  SimulatedFaults device;
  bool trace_refuses = false, capture_refuses = false;
  bool replay_does_nothing = false;
};

class SimulatedBenchDevice final : public BenchDevice {
 public:
  explicit SimulatedBenchDevice(const SimulatedBenchFaults& faults = {}) : faults_(faults), device_(faults.device) {
    device_.on_mark = [this] { marked_while_observed = marked_while_observed || observed; };
  }

  SimulatedDevice& device() { return device_; }
  DeviceTimer& timer() override { return device_; }
  Clock& host() override { return device_; }
  c10::Device tensors() const override { return c10::Device(c10::DeviceType::CPU); }
  std::string name() const override { return "simulated"; }
  std::function<void()> captured(const std::function<void()>& run) override {
    if (faults_.capture_refuses) throw std::runtime_error("simulated: the capture is refused\nwith a stack trace");
    device_.begin_capture();
    try {
      run();
    } catch (...) {
      device_.end_capture();
      throw;
    }
    const auto replay = device_.end_capture();
    if (faults_.replay_does_nothing) return [] {};
    return replay;
  }
  TracedRun traced(const std::function<void()>& run) override {
    observed = true;
    if (faults_.trace_refuses) return {std::nullopt, "cupti_absent: simulated"};
    const double before = device_.busy_s();
    run();
    device_.synchronize();
    return {device_.busy_s() - before, ""};
  }
  std::vector<CeilingWork> ceiling_work(bool) override {
    std::vector<CeilingWork> works;
    for (const auto& [name, rate] : rates) {
      // Amounts of a hundredth of a second.
      CeilingWork work{name, CeilingMeasure::kRate, name == "copy" ? "B/s" : "FLOP/s", 0.01 * rate, "simulated", {}};
      work.set_up = [this] { return device_.work(1, 0.01, 0.01); };
      works.push_back(work);
    }
    return works;
  }

  std::map<std::string, double> rates = {{"copy", 3e12}, {"gemm_fp32", 50e12}, {"gemm_bf16", 700e12}};
  bool observed = false;               // a traced pass has begun: an observer may have left something behind
  bool marked_while_observed = false;  // and a timed sample was taken after it

 private:
  SimulatedBenchFaults faults_;
  SimulatedDevice device_;
};

// What is wrong with a planted variant's answer: 2 x, of the first elements of x.
enum class PlantedAnswer {
  kRight,
  kTooLarge,         // by 1 %, always
  kOfFirstInputs,    // whatever lies in its inputs later
  kOfFirstContents,  // remembered by the address of its inputs, beyond a set-up too
  kChanges,          // right in its first 20 runs, too large by 1 from then on
  kStops,            // right in its first 20 runs; from then on nothing is computed
  kLaterCopies,      // too large by 1 % in every set-up but the first two
  kOfLastElement,    // replays its graph where the last element of x is the one it was captured with
  kServesFour,       // one launch serves four runs
};

// What a planted variant asks of the device in one run.
struct PlantedRun {
  int launches = 1;
  double warm_s = 20e-6, cold_s = 60e-6;  // a launch
  bool reads_scalar = false;              // at::item: the counters see it
  bool waits_unseen = false;              // the counters do not
  PlantedAnswer answer = PlantedAnswer::kRight;
  double elsewhere_s = 0;  // on another stream
  bool persists = false;   // asks the cache to keep its data over a flush
};

// Factories are plain functions: what they plant is here. One test at a time.
struct Planted {
  SimulatedBenchDevice* device = nullptr;
  PlantedRun baseline, optimized;
  int set_ups = 0;  // with the answer kLaterCopies
};
inline Planted planted;

class PlantedVariant : public Runnable {
 public:
  static constexpr std::int64_t kElements = 16;

  PlantedVariant(const NamedTensors& inputs, const PlantedRun& run)
      : x_(inputs["x"]), y_(at::zeros({kElements})), run_(run) {
    static int data = 0;
    work_ = planted.device->device().work(run.launches, run.warm_s, run.cold_s, run.waits_unseen, ++data);
    if (run.answer == PlantedAnswer::kLaterCopies) too_large_ = ++planted.set_ups > 2;
    too_large_ = too_large_ || run.answer == PlantedAnswer::kTooLarge;
    elsewhere_ = planted.device->device().work_elsewhere(run.elsewhere_s);
    if (run.persists) planted.device->device().persist(data);
  }
  void run() override {
    if (!compute()) return;
    work_();
    if (run_.elsewhere_s > 0) elsewhere_();
    if (run_.reads_scalar) {
      read_ = y_[0].item<float>();
      planted.device->device().synchronize();
    }
  }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  // No operator: the counters see only what is planted. False where nothing is launched.
  bool compute() {
    static std::map<const float*, std::vector<float>> remembered;
    const float* x = x_.const_data_ptr<float>();
    float* y = y_.mutable_data_ptr<float>();
    const bool later = ++runs_ > 20;
    if (run_.answer == PlantedAnswer::kStops && later) return true;
    if (run_.answer == PlantedAnswer::kOfFirstInputs && runs_ > 1) return true;
    if (run_.answer == PlantedAnswer::kServesFour && runs_ % 4 != 1) return false;
    if (run_.answer == PlantedAnswer::kOfLastElement) {
      const float last = x[x_.numel() - 1];
      if (runs_ > 1 && last == captured_with_) return false;
      captured_with_ = last;
    }
    if (run_.answer == PlantedAnswer::kOfFirstContents)
      x = remembered.try_emplace(x, x, x + kElements).first->second.data();
    for (std::int64_t i = 0; i < kElements; ++i) {
      y[i] = 2 * x[i];
      if (too_large_) y[i] *= 1.01f;
      if (run_.answer == PlantedAnswer::kChanges && later) y[i] += 1;
    }
    return true;
  }

  at::Tensor x_, y_;
  PlantedRun run_;
  bool too_large_ = false;
  std::int64_t runs_ = 0;
  std::function<void()> work_, elsewhere_;
  float read_ = 0, captured_with_ = 0;
};

class PlantedOracle : public Runnable {
 public:
  explicit PlantedOracle(const NamedTensors& inputs) : x_(inputs["x"]) {}
  void run() override {}
  NamedTensors outputs() override { return {{"y", x_.narrow(0, 0, PlantedVariant::kElements).mul(2)}}; }

 private:
  at::Tensor x_;
};

inline Component planted_component(std::int64_t elements, const std::string& regime, Cost cost) {
  static Cost planted_cost;
  planted_cost = cost;
  Component component;
  component.spec.pipeline = "test";
  component.spec.name = "planted";
  component.spec.regime = regime;
  Case input;
  input.name = "train";
  input.sizes = {{"n", elements}};
  input.timed = true;
  component.spec.cases = {input};
  component.spec.signature.sizes = {{"n", 1}};
  component.spec.signature.inputs = {data("x", "n", not_drawn())};
  component.spec.signature.outputs = {
      output("y", "16", {Tolerance::Kind::kBound, {2e-6, 2e-6}, {2e-6, 2e-6}, "elementwise"})};
  component.spec.finish_inputs = [](NamedTensors& inputs, const Setting&, std::uint64_t seed) {
    at::Tensor x = inputs["x"];
    x.fill_(1 + static_cast<double>(seed % 100));
  };
  component.spec.batch_size = "n";
  component.spec.cost = [](const Setting&) { return planted_cost; };
  component.has_kernel = true;
  component.baseline = [](const NamedTensors& inputs, const Setting& setting) -> std::unique_ptr<Runnable> {
    if (setting.dtype == Dtype::kFp64) return std::make_unique<PlantedOracle>(inputs);
    return std::make_unique<PlantedVariant>(inputs, planted.baseline);
  };
  component.optimized_cuda = [](const NamedTensors& inputs, const Setting&) -> std::unique_ptr<Runnable> {
    return std::make_unique<PlantedVariant>(inputs, planted.optimized);
  };
  return component;
}

}  // namespace twinbench
