// The batch's live flows as tensors of the library's way, and what has come of the others.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "baselines/energy_flow/common/flows.h"
#include "src/named_tensors.h"

namespace twinbench::energy_flow::flow_forward {

class LiveFlows {
 public:
  // One flow for each admitted cell of the surfaces [samples, cells].
  LiveFlows(const Setting& setting, const HostRules& rules, const at::Tensor& surface, const at::Tensor& sample_key);

  // The stop rule before step t. False when all samples have finished.
  bool look(std::int64_t t);
  // The flows' step, and their children.
  void advance(std::int64_t t, const Moves& moves);
  void collect(NamedTensors& results);

  // Where the live flows stand among all that there can be, and rows of those there, zeros elsewhere.
  at::Tensor places() const;
  at::Tensor dense(const at::Tensor& rows, const at::Tensor& places, std::int64_t axis) const;
  at::Tensor noise(const ExplorationNoise& noise, std::int64_t t) const;  // [flows, 3]
  const at::Tensor& position() const { return position_; }                // [flows, 3]
  const at::Tensor& energy() const { return energy_; }                    // [flows, 1]
  const at::Tensor& hidden() const { return hidden_; }                    // [layers, flows, width]

 private:
  struct Ended {
    at::Tensor position, energy, age, distance, sample;
  };
  void end(const at::Tensor& which, const at::Tensor& position, const at::Tensor& energy, const at::Tensor& age,
           const at::Tensor& distance);
  void keep(const at::Tensor& which);  // of the live flows
  void spawn(const at::Tensor& count, const at::Tensor& position, const at::Tensor& energy);
  void count(Statistic column, const at::Tensor& which);
  void note(const at::Tensor& margins, const at::Tensor& which);  // a margin each, of the flows of a mask
  void note_spawn(const at::Tensor& measure, const at::Tensor& which);
  at::Tensor cell_along(const at::Tensor& coordinate, std::int64_t extent, const at::Tensor& sample);
  at::Tensor per_sample(const at::Tensor& of_flows) const;  // sums, int64

  const HostRules& rules_;
  const std::int64_t samples_;
  const double start_depth_;
  const bool tells_margin_;
  at::Tensor keys_;                        // [samples]
  at::Tensor position_, energy_, hidden_;  // of live flows, in the order of samples and numbers
  at::Tensor sample_, local_id_, age_;     // int64
  at::Tensor stats_, active_, margin_;     // the outputs, stats as columns [statistics, samples]
  at::Tensor best_, stall_, finished_;     // [samples]
  std::vector<Ended> ended_;
};

}  // namespace twinbench::energy_flow::flow_forward
