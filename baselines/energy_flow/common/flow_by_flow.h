// The flows of a batch, one after another and one step after another (C16): placed, gathered, moved, read, scattered,
// stopped. What the networks are, what is kept of a step and how surfaces are collected is a derived class's.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "baselines/common/tape.h"
#include "baselines/energy_flow/common/flows.h"

namespace twinbench::energy_flow::flow_forward {

class FlowByFlow : public TapeBaseline {
 protected:
  // The flows' tensors are like the input `like`; `chunk` flows go through the networks at once.
  FlowByFlow(const NamedTensors& inputs, const Setting& setting, const std::string& like, std::int64_t chunk,
             bool logs);

  // Several flows before a step: [flows, 3], [flows, 1], [flows, layers, width].
  struct Batch {
    at::Tensor position, energy, hidden;
  };
  virtual at::Tensor start_energies(std::int64_t b) = 0;  // [cells]
  // Energies, displacements as `move`, hidden states, in gate mode gates and children's energies.
  virtual Moves networks(const Batch& batch) = 0;
  virtual void collect(std::int64_t b) = 0;
  // One flow has been moved and settled; one of its requests has become flow number `child`.
  virtual void settled(std::int64_t /*b*/, std::size_t /*flow*/, const Readings& /*readings*/,
                       std::int64_t /*children*/) {}
  virtual void admitted(const Request& /*request*/, std::int64_t /*b*/, std::size_t /*child*/) {}

  // From placement to the collection of all samples.
  void live();
  // The same, one step at a time: placement; then, each time, the next step and the collection of copies. Between two
  // of them the flows can be given to another variant, and taken from one (flow_standing.h).
  void start_steps();
  void take_step();
  NamedTensors flows_between_steps();
  void take_flows(const NamedTensors& state);
  NamedTensors outputs() override;
  at::Tensor stats() const;   // int32 [samples, statistics], on the host
  at::Tensor margin() const;  // fp64 [samples], on the host
  const at::Tensor& active() const { return active_; }

  Book& book(std::int64_t b) { return books_[static_cast<std::size_t>(b)]; }
  std::vector<Flow>& flows(std::int64_t b) { return flows_[static_cast<std::size_t>(b)]; }
  std::int64_t samples() const { return setting_.size("samples"); }

  const HostRules rules_;
  const at::TensorOptions options_;
  const Grid grid_;
  at::Tensor surface_;          // [samples, cells]
  std::size_t flow_steps_ = 0;  // executed in this run
  std::int64_t stop_tests_ = 0;
  NamedTensors host_results_;  // made on the host, wherever the flows are

 private:
  using Live = std::vector<std::pair<std::int64_t, std::size_t>>;  // sample and place among its flows

  void start();
  void place(std::int64_t b);
  bool look(std::int64_t t, at::Tensor progress);
  void end_sample(std::int64_t b);
  void step(std::int64_t t);
  void advance(const Live& live, std::int64_t t);
  void admit(std::int64_t b);
  void log(const Live& live);

  const ExplorationNoise noise_;
  const std::int64_t chunk_;
  const bool logs_;
  const at::Tensor& sample_key_;
  at::Tensor active_;
  std::vector<Book> books_;
  std::vector<std::vector<Flow>> flows_;        // by sample, in the order of their numbers
  std::vector<std::vector<Request>> requests_;  // of this step
  std::int64_t steps_taken_ = 0;                // one at a time
};

}  // namespace twinbench::energy_flow::flow_forward
