// What both paths of sem.complex_adamw share: the arena that is advanced, its pieces, the arguments of every step.
#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <vector>

#include "kernels/sem/complex_adamw/arguments.h"
#include "optimized/common/arena_pieces.h"
#include "optimized/common/tensors.h"
#include "src/sem/common/adamw_rule.h"
#include "src/sem/common/parameter_table.h"
#include "src/sem/common/random.h"

namespace twinbench::sem::complex_adamw {

static_assert(kernels::kAdamwFirst == kBetaFirst && kernels::kAdamwSecond == kBetaSecond &&
              kernels::kClipFloor == kClipEpsilon && kEndOfRun == kMostInARow);

// The arena without what has no gradient, cut into pieces. Neighbouring plain tensors are one stretch where no noise
// tells them apart.
inline std::vector<Piece> pieces_of(const std::vector<ParameterEntry>& table, bool noise) {
  std::vector<Piece> pieces;
  Piece stretch;
  std::int64_t length = 0;
  const auto cut = [&] {
    each_piece_of(stretch.first, length, [&](std::int64_t begin, std::int64_t count) {
      Piece piece = stretch;
      piece.first = begin;
      piece.second += begin - stretch.first;
      piece.element += begin - stretch.first;
      piece.count = static_cast<std::int32_t>(count);
      pieces.push_back(piece);
    });
    length = 0;
  };
  for (std::size_t tensor = 0; tensor < table.size(); ++tensor) {
    const ParameterEntry& entry = table[tensor];
    const bool goes_on = !noise && entry.kind == ParameterKind::kPlain && stretch.partner == 0 && length > 0 &&
                         entry.first == stretch.first + length;
    if (!goes_on) cut();
    if (!entry.has_gradient() || entry.kind == ParameterKind::kImaginary || entry.count == 0) continue;
    if (!goes_on)
      stretch = {.first = entry.first,
                 .second = entry.second,
                 .partner = entry.kind == ParameterKind::kReal ? entry.count : 0,
                 .element = 0,
                 .count = 0,
                 .stream = kOptimizerNoise + static_cast<std::uint32_t>(tensor)};
    length += entry.count;
  }
  cut();
  return pieces;
}

class Plan : public Runnable {
 public:
  Plan(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs), results_(empty_results(setting)), steps_(setting.size("steps")) {
    const auto pieces = pieces_of(
        parameter_table(inputs["offsets"], inputs["kinds"], setting.size("elements"), setting.size("seconds")),
        setting.option("temperature") > 0);
    const auto place = inputs["parameters"].options();
    const auto bytes = static_cast<std::int64_t>(pieces.size() * sizeof(Piece));
    const at::Tensor table = at::empty({bytes}, at::kByte);
    if (bytes > 0) std::memcpy(table.mutable_data_ptr(), pieces.data(), static_cast<std::size_t>(bytes));
    pieces_ = table.to(place.device());
    partial_ = at::empty({partials(static_cast<std::int64_t>(pieces.size()))}, place.dtype(at::kDouble));
    arrived_ = at::zeros({1}, place.dtype(at::kInt));
    step_ = at::zeros({static_cast<std::int64_t>(sizeof(Step))}, place.dtype(at::kByte));
    first_ = {.pieces = reinterpret_cast<const Piece*>(pieces_.const_data_ptr()),
              .count = static_cast<std::int64_t>(pieces.size()),
              .rule = {.clip = setting.option("clip"),
                       .weight_decay = setting.option("weight_decay"),
                       .temperature = setting.option("temperature")},
              .clears = setting.on("clear_gradients"),
              .seed = static_cast<std::uint64_t>(inputs["seed"].item<std::int64_t>()),
              .parameters = data<float>(results_["parameters"]),
              .gradients = data<float>(results_["gradients"]),
              .first_moment = data<float>(results_["first_moment"]),
              .second_moment = data<float>(results_["second_moment"]),
              .learning_rate = inputs["learning_rate"].const_data_ptr<float>(),
              .loss = inputs["loss"].const_data_ptr<float>(),
              .counts = data<std::int64_t>(results_["counts"]),
              .status = data<std::int64_t>(results_["status"]),
              .norm = data<double>(results_["norm"]),
              .coefficient = data<double>(results_["coefficient"]),
              .partial = data<double>(partial_),
              .arrived = reinterpret_cast<unsigned*>(data<std::int32_t>(arrived_)),
              .step = reinterpret_cast<Step*>(step_.mutable_data_ptr())};
    Plan::reset();
  }

  void run() override {
    for (std::int64_t step = 0; step < steps_; ++step) take(of_step(step));
  }
  void reset() override {
    for (const char* name : {"parameters", "first_moment", "second_moment", "gradients", "counts"})
      results_[name].copy_(inputs_[name]);
  }
  NamedTensors outputs() override { return results_; }

 protected:
  virtual void take(const Arguments& arguments) = 0;

 private:
  // The CPU keeps a sum a piece.
  static std::int64_t partials(std::int64_t pieces) { return std::max(pieces, kMostNormBlocks); }

  // Rates and losses are read by every run, by their strides.
  Arguments of_step(std::int64_t step) const {
    Arguments arguments = first_;
    arguments.gradients += step * results_["gradients"].size(1);
    arguments.learning_rate += step * inputs_["learning_rate"].stride(0);
    arguments.loss += step * inputs_["loss"].stride(0);
    arguments.status += step;
    arguments.norm += step;
    arguments.coefficient += step;
    return arguments;
  }

  NamedTensors inputs_, results_;
  std::int64_t steps_;
  at::Tensor pieces_, partial_, arrived_, step_;
  Arguments first_;
};

}  // namespace twinbench::sem::complex_adamw
