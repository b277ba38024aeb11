// energy_flow.flow_forward, optimized on CUDA: 7 kernels, and 6 + layers a step that is issued, or one graph a step;
// no product of the library, nothing read back, nothing allocated. Every eighth step the host looks at a flag without
// waiting. A flow's
// state is written to the row that the next step reads: live flows lie together after every step, so that there is
// nothing for memory_cleanup_interval to save, and a child reads its parent's row.
#include <ATen/ATen.h>

#include "kernels/energy_flow/flow_forward/arguments.h"
#include "optimized/common/captured.h"
#include "optimized/common/choose.h"
#include "optimized/common/cuda.h"
#include "optimized/energy_flow/common/captured_steps.h"
#include "optimized/energy_flow/common/device_mapper.h"
#include "optimized/energy_flow/common/device_records.h"
#include "optimized/energy_flow/common/flow_steps.h"
#include "src/energy_flow/common/flow_calls.h"
#include "src/energy_flow/common/flow_lives.h"
#include "src/stepwise.h"

namespace twinbench::energy_flow::flow_forward {
namespace {

class CudaForward final : public Runnable, public Stepwise, private FlowSteps {
 public:
  CudaForward(const NamedTensors& inputs, const Setting& setting)
      : FlowSteps(inputs, setting, Rules(setting), 1),
        setting_(setting),
        results_(empty_results(setting)),
        mapper_(inputs, setting, inputs["embedding"].contiguous()) {
    a_.energies = data<float>(mapper_.surface());
    const std::int64_t slots = a_.slots.all(), layers = setting.size("layers");
    const bool stores = keeps_bf16(setting);
    for (at::Tensor& state : states_) state = made({layers, slots, heads_.stride}, stores ? at::kBFloat16 : at::kFloat);
    if (stores) exact_ = made({layers, slots, heads_.stride});
    a_.surface = data<float>(results_["surface"]);
    const bool aside = sets_decisions_aside(setting);  // then nobody is told of the margins that the kernels note
    a_.margin = aside ? new_floats({a_.slots.samples}) : data<float>(results_["margin"]);
    if (aside) results_["margin"].fill_(1);
    a_.stats = data<std::int32_t>(results_["stats"]);
    a_.active = data<std::int32_t>(results_["active"]);
    if (setting.option("captured_steps") > 0 && slots > 0 && rules_.stop.max_steps > 0) capture(setting);
  }

  void run() override {
    if (a_.slots.samples == 0) return;
    announce_flow_forward(a_.slots.samples);
    mapper_.run(stream());
    if (starts_graphs_)
      start_steps(a_.stop.max_steps, [this](std::int32_t t) { graphs_.of_step(t)(stream()); });
    else
      issue(
          a_.stop.max_steps, [](std::int32_t) {}, [this](std::int32_t t) { issue_step(t, stream()); });
    launch_collect(a_, stream());
  }

  NamedTensors outputs() override { return results_; }

  // Launch by launch, whatever captured_steps says.
  void begin() override {
    steps_ = 0;
    if (a_.slots.samples == 0) return;
    mapper_.run(stream());
    place();
  }
  void step() override {
    const std::int32_t t = steps_++;
    if (a_.slots.samples == 0) return;
    look(t);
    issue_step(t, stream());
    results_["stats"].select(1, kCells).zero_();
    launch_collect(a_, stream());
  }
  NamedTensors state() override {
    NamedTensors all = no_flows(setting_, at::kFloat);
    if (a_.slots.samples > 0) DeviceRecords(a_, states_[steps_ % 2]).give(all);
    all["steps"].fill_(steps_);
    return all;
  }
  void set_state(const NamedTensors& state) override {
    const NamedTensors all = in_floats(state);
    steps_ = static_cast<std::int32_t>(all["steps"].item<std::int64_t>());
    if (a_.slots.samples > 0) DeviceRecords(a_, states_[steps_ % 2]).take(all);
  }

 private:
  void issue_step(std::int32_t t, kernels::Stream on) {
    launch_neuron(a_, on);
    const at::Tensor &before = states_[t % 2], &after = states_[(t + 1) % 2];
    float* const exact = data<float>(exact_.defined() ? exact_ : after);
    const std::int64_t of_layer = a_.slots.all() * heads_.stride;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      TileArguments& layer = layers_[l];
      const std::int64_t from = static_cast<std::int64_t>(l) * of_layer;
      layer.input = l == 0 ? a_.input : exact + from - of_layer;
      layer.out = exact + from;
      if (exact_.defined())
        layer.stored = data<std::uint16_t>(before) + from, layer.out_stored = data<std::uint16_t>(after) + from;
      else
        layer.state = data<float>(before) + from;
      launch_recurrent(layer, on);
    }
    heads_.state = layers_.back().out;
    launch_head_products(heads_, on);
    launch_finish(a_, on);
    launch_settle(a_, on);
  }

  // Records every step's graph, and takes them where that is quicker or demanded.
  void capture(const Setting& setting) {
    const DeviceGuard device(setting.device);
    std::int32_t* const clock = new_integers(2);
    a_.clock = clock;
    const std::int64_t samples = a_.slots.samples, slots = a_.slots.all();
    const std::string of = "flow steps of " + std::to_string(slots) + " slots, " + std::to_string(layers_.size()) +
                           " layers of " + std::to_string(setting.size("hidden"));
    const bool demanded = setting.option("captured_steps") == 2;
    const auto children = static_cast<std::int64_t>(setting.option("spawn") > 0 ? setting.option("most_spawned") : 0);
    const auto issue = [this](std::int64_t rows, std::int32_t t, kernels::Stream on) {
      for_rows(rows);
      a_.step = 0;
      issue_step(t, on);
      a_.step = 1;
      launch_look(a_, on);
      launch_list(a_, on);
    };
    const bool recorded = record_graphs(of, demanded, [&] {
      graphs_ = CapturedSteps({samples * a_.placed, slots, children}, a_.stop.max_steps, issue);
    });
    for_rows(slots);
    a_.clock = nullptr;
    if (!recorded) return;
    const auto take = [this, clock](bool graphs) {
      starts_graphs_ = graphs;
      a_.clock = graphs ? clock : nullptr;
    };
    const double launches = 6 + static_cast<double>(layers_.size());
    const std::vector<Way> ways = {{"eager", expected_eager_seconds(launches), [&] { take(false), run(); }},
                                   {"captured", expected_captured_seconds(launches), [&] { take(true), run(); }}};
    take(demanded || choose(of, ways, kLeastCaptureGain) == 1);
  }

  // A step's grids are for so many.
  void for_rows(std::int64_t rows) {
    a_.most_rows = heads_.rows = rows;
    for (TileArguments& layer : layers_) layer.rows = rows;
  }

  const Setting setting_;
  NamedTensors results_;
  const DeviceMapper mapper_;
  at::Tensor states_[2];  // [layers, slots, stride]: before a step, after it
  at::Tensor exact_;      // likewise, after it: where states are stored in bf16, what they were before
  CapturedSteps graphs_;
  bool starts_graphs_ = false;
  std::int32_t steps_ = 0;  // taken, one at a time
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaForward>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_forward
