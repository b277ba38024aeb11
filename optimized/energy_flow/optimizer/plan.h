// What both paths of energy_flow.optimizer share: the arena that is advanced, its pieces, every window's arguments.
#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <vector>

#include "kernels/energy_flow/optimizer/arguments.h"
#include "optimized/common/arena_pieces.h"
#include "optimized/common/tensors.h"
#include "src/energy_flow/common/optimizer_rule.h"
#include "src/energy_flow/common/trained_tensors.h"

namespace twinbench::energy_flow::optimizer {

static_assert(kernels::kAdamwFirst == kBetaFirst && kernels::kAdamwSecond == kBetaSecond &&
              kernels::kClipFloor == kClipEpsilon && kRateFloor == kLeastRate && kRateCut == kRateFactor &&
              kGain == kLeastGain && kMostBadEpochs == kPatience);

// The arena without what has no gradient, cut into pieces; neighbours are one stretch.
inline std::vector<Piece> pieces_of(const std::vector<TrainedTensor>& tensors) {
  std::vector<Piece> pieces;
  TensorPlace stretch;
  const auto cut = [&] {
    each_piece_of(stretch.first, stretch.count, [&](std::int64_t first, std::int64_t count) {
      pieces.push_back({.first = first, .count = static_cast<std::int32_t>(count), .unused = 0});
    });
  };
  for (const TrainedTensor& one : tensors) {
    if (!one.has_gradient) continue;
    if (one.place.first != stretch.first + stretch.count) {
      cut();
      stretch = {one.place.first, 0};
    }
    stretch.count += one.place.count;
  }
  cut();
  return pieces;
}

class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        results_(empty_results(setting)),
        epochs_(setting.size("epochs")),
        windows_(setting.size("windows")) {
    const auto pieces = pieces_of(trained_tensors(inputs, setting.size("elements")));
    const auto count = static_cast<std::int64_t>(pieces.size());
    const auto place = inputs["parameters"].options();
    const auto bytes = count * static_cast<std::int64_t>(sizeof(Piece));
    const at::Tensor table = at::empty({bytes}, at::kByte);
    if (bytes > 0) std::memcpy(table.mutable_data_ptr(), pieces.data(), static_cast<std::size_t>(bytes));
    pieces_ = table.to(place.device());
    partial_ = at::empty({std::max(count, kernels::kMostNormBlocks)}, place.dtype(at::kDouble));  // the CPU's: a piece
    arrived_ = at::zeros({1}, place.dtype(at::kInt));
    step_ = at::zeros({static_cast<std::int64_t>(sizeof(Step))}, place.dtype(at::kByte));
    first_ = {.pieces = reinterpret_cast<const Piece*>(pieces_.const_data_ptr()),
              .count = count,
              .rule = {.clip = setting.option("clip"), .weight_decay = setting.option("weight_decay")},
              .clears = setting.on("clear_gradients"),
              .parameters = data<float>(results_["parameters"]),
              .gradients = data<float>(results_["gradients"]),
              .first_moment = data<float>(results_["first_moment"]),
              .second_moment = data<float>(results_["second_moment"]),
              .factor = inputs["gradient_factor"].const_data_ptr<float>(),
              .micro_steps = inputs["micro_steps"].const_data_ptr<std::int64_t>(),
              .schedule = data<double>(results_["schedule"]),
              .counts = data<std::int64_t>(results_["counts"]),
              .status = data<std::int64_t>(results_["status"]),
              .norm = data<double>(results_["norm"]),
              .coefficient = data<double>(results_["coefficient"]),
              .learning_rate = data<double>(results_["learning_rate"]),
              .partial = data<double>(partial_),
              .arrived = reinterpret_cast<unsigned*>(data<std::int32_t>(arrived_)),
              .step = reinterpret_cast<Step*>(step_.mutable_data_ptr())};
    Plan::reset();
  }

  void run() override {
    for (std::int64_t epoch = 0; epoch < epochs_; ++epoch)
      for (std::int64_t window = 0; window < windows_; ++window) take(of_window(epoch, window));
  }
  void reset() override {
    for (const char* name : {"parameters", "first_moment", "second_moment", "gradients", "counts", "schedule"})
      results_[name].copy_(inputs_[name]);
  }
  NamedTensors outputs() override { return results_; }

 protected:
  virtual void take(const Arguments& arguments) = 0;

 private:
  // Factors, micro-steps and losses are read by every run, by their strides.
  Arguments of_window(std::int64_t epoch, std::int64_t window) const {
    const std::int64_t at = epoch * windows_ + window;
    Arguments arguments = first_;
    arguments.gradients += at * results_["gradients"].size(1);
    arguments.factor += at * inputs_["gradient_factor"].stride(0);
    arguments.micro_steps += at * inputs_["micro_steps"].stride(0);
    if (window == windows_ - 1)
      arguments.epoch_loss = inputs_["epoch_loss"].const_data_ptr<double>() + epoch * inputs_["epoch_loss"].stride(0);
    arguments.status += at;
    arguments.norm += at;
    arguments.coefficient += at;
    arguments.learning_rate += at;
    return arguments;
  }

  NamedTensors inputs_, results_;
  std::int64_t epochs_, windows_;
  at::Tensor pieces_, partial_, arrived_, step_;
  Arguments first_;
};

}  // namespace twinbench::energy_flow::optimizer
