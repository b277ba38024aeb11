// energy_flow.flow_forward, optimized on the CPU: tiles of flows go through neuron, recurrent layers, heads and step in
// cache; samples are independent of one another. Nothing is allocated and nothing read back after construction.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "optimized/common/tensors.h"
#include "optimized/energy_flow/common/sample_flows.h"
#include "optimized/energy_flow/common/surface_mapper.h"
#include "src/energy_flow/common/flow_calls.h"
#include "src/energy_flow/common/flow_lives.h"
#include "src/stepwise.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

class CpuForward final : public Runnable, public Stepwise {
 public:
  CpuForward(const NamedTensors& inputs, const Setting& setting)
      : setting_(setting),
        samples_(setting.size("samples")),
        threads_(std::max<std::int64_t>(1, at::get_num_threads())),
        tells_margin_(!sets_decisions_aside(setting)),
        rules_(setting),
        networks_(inputs, setting),
        mapper_(inputs, setting),
        sample_key_(inputs["sample_key"].contiguous()),
        results_(zero_results(setting)) {
    for (std::int64_t b = 0; b < samples_; ++b)
      flows_.push_back(
          std::make_unique<SampleFlows>(rules_, networks_, setting.size("layers") * setting.size("hidden")));
    scratch_ = at::empty({threads_, (networks_.scratch_size() + kLanes - 1) / kLanes * kLanes}, at::kFloat);
  }

  void run() override {
    announce_flow_forward(samples_);
    mapper_.run();
    if (samples_ >= threads_)
      over_samples();
    else
      for (std::int64_t b = 0; b < samples_; ++b) run_sample(b, threads_, 0);
  }

  NamedTensors outputs() override { return results_; }

  void begin() override {
    mapper_.run();
    steps_ = 0;
    for (std::int64_t b = 0; b < samples_; ++b) place(b);
  }
  void step() override {
    for (std::int64_t b = 0; b < samples_; ++b) {
      if (!flows_of(b).finished()) goes_on(b, steps_, 1, 0);
      report(b);
    }
    ++steps_;
  }
  NamedTensors state() override {
    NamedTensors all = no_flows(setting_, at::kFloat);
    for (std::int64_t b = 0; b < samples_; ++b) flows_of(b).give(FlowRecords::of(all, b));
    all["steps"].fill_(steps_);
    return all;
  }
  void set_state(const NamedTensors& state) override {
    const NamedTensors all = in_floats(state);
    for (std::int64_t b = 0; b < samples_; ++b) flows_of(b).take(FlowRecords::of(all, b));
    steps_ = static_cast<std::int32_t>(all["steps"].item<std::int64_t>());
  }

 private:
  SampleFlows& flows_of(std::int64_t b) { return *flows_[static_cast<std::size_t>(b)]; }

  // Whole samples, a piece of them for every thread.
  void over_samples() {
    const std::int64_t each = (samples_ + threads_ - 1) / threads_;
    at::parallel_for(0, threads_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t piece = begin; piece < end; ++piece)
        for (std::int64_t b = piece * each; b < std::min(samples_, (piece + 1) * each); ++b) run_sample(b, 1, piece);
    });
  }

  // `pieces` share a sample's tiles; the first one's scratch is number `scratch`.
  void run_sample(std::int64_t b, std::int64_t pieces, std::int64_t scratch) {
    place(b);
    for (std::int32_t t = 0; goes_on(b, t, pieces, scratch); ++t) {
    }
    report(b);
  }

  void place(std::int64_t b) {
    std::fill_n(active_of(b), rules_.stop.max_steps, 0);
    flows_of(b).place(data<float>(mapper_.surface()) + b * rules_.cells());
  }

  std::int32_t* active_of(std::int64_t b) { return data<std::int32_t>(results_["active"]) + b * rules_.stop.max_steps; }

  // Step t of a sample that has not finished; false where it finishes instead.
  bool goes_on(std::int64_t b, std::int32_t t, std::int64_t pieces, std::int64_t scratch) {
    SampleFlows& flows = flows_of(b);
    flows.look(t);
    if (flows.finished()) return false;
    active_of(b)[t] = flows.active();
    const auto key = static_cast<std::uint32_t>(sample_key_.const_data_ptr<std::int64_t>()[b]);
    advance(flows, t, key, pieces, scratch);
    flows.settle(t);
    return true;
  }

  void report(std::int64_t b) {
    SampleFlows& flows = flows_of(b);
    flows.collect(data<float>(results_["surface"]) + b * rules_.cells());
    std::copy_n(flows.stats().data(), int{kStatistics}, data<std::int32_t>(results_["stats"]) + b * kStatistics);
    data<float>(results_["margin"])[b] = tells_margin_ ? flows.margin() : 1.0f;
  }

  void advance(SampleFlows& flows, std::int32_t t, std::uint32_t key, std::int64_t pieces, std::int64_t scratch) {
    const std::int64_t tiles = flows.tiles(), each = (tiles + pieces - 1) / pieces;
    const auto piece = [&](std::int64_t i) {
      float* const own = data<float>(scratch_) + (scratch + i) * scratch_.size(1);
      for (std::int64_t tile = i * each; tile < std::min(tiles, (i + 1) * each); ++tile)
        flows.advance(tile, t, key, own);
    };
    if (pieces == 1) return piece(0);
    at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) piece(i);
    });
  }

  const Setting setting_;
  const std::int64_t samples_, threads_;
  const bool tells_margin_;
  const Rules rules_;
  const TileNetworks networks_;
  const SurfaceMapper mapper_;
  const at::Tensor sample_key_;
  NamedTensors results_;
  std::vector<std::unique_ptr<SampleFlows>> flows_;
  at::Tensor scratch_;      // [threads, floats]
  std::int32_t steps_ = 0;  // taken, one at a time
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuForward>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_forward
