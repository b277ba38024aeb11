// What the versions of energy_flow.data_parallel share (C33): ranks of one thread over the loop-back, each with its own
// copy of the state, the broadcast at the start, the digest every so many windows, the results.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "src/common/parameter_arena.h"
#include "src/component.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/window_rows.h"
#include "src/process_group.h"

namespace twinbench::energy_flow {

class RankWindows : public Runnable {
 public:
  RankWindows(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        rows_(window_rows(inputs["rows"])),
        places_(tensor_places(inputs["offsets"], inputs["parameters"].numel())),
        alone_(setting.on("no_group") && rows_.ranks == 1),
        digest_every_(static_cast<std::int64_t>(setting.option("digest_every"))),
        states_(static_cast<std::size_t>(rows_.ranks)),
        ends_(states_.size()) {
    for (State& state : states_)
      state = {at::empty_like(inputs["parameters"], at::MemoryFormat::Contiguous),
               at::empty_like(inputs["first_moment"], at::MemoryFormat::Contiguous),
               at::empty_like(inputs["second_moment"], at::MemoryFormat::Contiguous)};
    if (!alone_) groups_ = ProcessGroup::loop_back(static_cast<int>(rows_.ranks));
    for (std::int64_t rank = 0; rank < rows_.ranks; ++rank)
      for (std::int64_t i = 0; i < rows_.micro_steps; ++i) gradients_.push_back(inputs["gradients"][rank][i]);
    RankWindows::reset();
  }

  void reset() override {
    const at::Tensor counts = inputs_["counts"].contiguous();
    applied_ = counts.const_data_ptr<std::int64_t>()[0];
    skipped_ = counts.const_data_ptr<std::int64_t>()[1];
    windows_ = 0;
    for (int rank = 0; rank < rows_.ranks; ++rank) {
      State& mine = state(rank);
      for (const auto& [tensor, name] :
           {std::pair{mine.parameters, "parameters"}, {mine.first, "first_moment"}, {mine.second, "second_moment"}}) {
        if (rank == 0) tensor.copy_(inputs_[name]);
        if (rank != 0) tensor.fill_(std::numeric_limits<double>::quiet_NaN());  // what it has before it is told
        if (!alone_) group(rank).begin_broadcast(tensor);
      }
    }
    for (const auto& group : groups_) group->wait_all();
  }

  void run() override {
    window(ends_);
    (ends_.front().applied ? applied_ : skipped_) += 1;
    if (digest_every_ == 0 || alone_ || ++windows_ % digest_every_ != 0) return;
    std::vector<ParameterDigest> digests;
    for (int rank = 0; rank < rows_.ranks; ++rank) digests.emplace_back(group(rank), state(rank).parameters);
    for (const ParameterDigest& digest : digests) digest.check(windows_);
  }

  NamedTensors outputs() override {
    at::Tensor status = at::empty({rows_.ranks}, at::kLong), equal = at::empty({rows_.ranks}, at::kBool),
               counts = at::empty({2}, at::kLong);
    counts.mutable_data_ptr<std::int64_t>()[0] = applied_;
    counts.mutable_data_ptr<std::int64_t>()[1] = skipped_;
    for (std::int64_t rank = 0; rank < rows_.ranks; ++rank) {
      const WindowEnd& end = ends_[static_cast<std::size_t>(rank)];
      status.mutable_data_ptr<std::int64_t>()[rank] =
          static_cast<std::int64_t>(end.applied ? WindowStatus::kApplied : WindowStatus::kNotFinite);
      const State &mine = state(static_cast<int>(rank)), &first = state(0);
      const std::size_t bytes = first.parameters.nbytes();  // of nothing there is no address
      const bool same = (bytes == 0 || std::memcmp(mine.parameters.const_data_ptr(), first.parameters.const_data_ptr(),
                                                   bytes) == 0) &&
                        std::memcmp(&end.norm, &ends_.front().norm, sizeof end.norm) == 0;
      equal.mutable_data_ptr<bool>()[rank] = same;
    }
    return {{"parameters", state(0).parameters},
            {"first_moment", state(0).first},
            {"second_moment", state(0).second},
            {"counts", counts},
            {"gradient", mean_gradient()},
            {"norm", at::full({1}, ends_.front().norm, at::kDouble)},
            {"status", status},
            {"equal", equal}};
  }

 protected:
  struct State {
    at::Tensor parameters, first, second;
  };

  // One window of all ranks: gradients of all micro-steps, their sum over ranks, the update; how it ended, by rank.
  // What is asked of the group is asked for all ranks before any of them waits.
  virtual void window(std::vector<WindowEnd>& ends) = 0;
  // Rank 0's of the last window: the mean over all rows.
  virtual at::Tensor mean_gradient() = 0;

  const WindowRows& rows() const { return rows_; }
  const std::vector<TensorPlace>& places() const { return places_; }
  State& state(int rank) { return states_[static_cast<std::size_t>(rank)]; }
  bool alone() const { return alone_; }  // without any group, as there were no data parallelism
  ProcessGroup& group(int rank) { return *groups_[static_cast<std::size_t>(rank)]; }
  const at::Tensor& gradient(int rank, std::int64_t micro_step) const {
    return gradients_[static_cast<std::size_t>(rank * rows_.micro_steps + micro_step)];
  }
  std::int64_t next_update() const { return applied_ + 1; }

 private:
  NamedTensors inputs_;
  WindowRows rows_;
  std::vector<TensorPlace> places_;
  bool alone_;
  std::int64_t digest_every_, applied_ = 0, skipped_ = 0, windows_ = 0;
  std::vector<State> states_;
  std::vector<WindowEnd> ends_;
  std::vector<at::Tensor> gradients_;  // views of the input, by rank and micro-step
  std::vector<std::unique_ptr<ProcessGroup>> groups_;
};

}  // namespace twinbench::energy_flow
