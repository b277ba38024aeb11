// Optimized energy_flow.output_collector on the CPU: products that stream each weight once, vector loops between them.
#include <ATen/ops/empty.h>

#include "kernels/energy_flow/output_collector/math.h"
#include "optimized/common/activation_rows.h"
#include "optimized/common/packing.h"
#include "optimized/common/row_product.h"
#include "optimized/common/rows.h"
#include "src/energy_flow/common/surface_map.h"

namespace twinbench::energy_flow::output_collector {
namespace {

using kernels::ActivationLayer;

template <class Real>
class CpuCollector final : public Runnable {
 public:
  CpuCollector(const NamedTensors& inputs, const Setting& setting)
      : round_(rounds_operands(setting)),
        rows_(setting.size("batch")),
        cells_(setting.size("cells")),
        entries_(setting.size("entries")),
        results_(empty_results(setting)) {
    for (const auto& [name, tensor] : inputs)
      inputs_.set(name, name.rfind("weight_", 0) == 0 ? operand_of(tensor, setting) : tensor.contiguous());
    const auto matrix = [&](std::int64_t columns) { return at::empty({rows_, columns}, inputs_["energy"].options()); };
    surface_ = matrix(cells_);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i + 1);
      const std::int64_t width = inputs_["weight_" + number].size(0);
      products_[i] = matrix(width);
      hidden_[i] = matrix(width);
      layers_[i] = {.rows = rows_,
                    .width = width,
                    .bias = values("bias_" + number),
                    .gain = values("gain_" + number),
                    .shift = values("shift_" + number),
                    .product = data<Real>(products_[i]),
                    .hidden = {.plain = data<Real>(hidden_[i])}};
    }
  }

  void run() override {
    if (rows_ == 0) return;
    fill_surface();
    for (std::size_t i = 0; i < 2; ++i) {
      multiply_rows_transposed<Real>(i == 0 ? surface_ : hidden_[0], inputs_["weight_" + std::to_string(i + 1)],
                                     products_[i]);
      at::parallel_for(0, rows_, grain(layers_[i].width, kElements),
                       [&](auto begin, auto end) { activate_rows(layers_[i], begin, end, round_); });
    }
    const at::Tensor& embedding = results_["embedding"];
    multiply_rows_transposed<Real>(hidden_[1], inputs_["weight_3"], embedding);
    for (std::int64_t row = 0; row < rows_; ++row)
      add_row(values("bias_3"), data<Real>(embedding) + row * embedding.size(1), embedding.size(1));
  }

  NamedTensors outputs() override { return results_; }

 private:
  static constexpr std::int64_t kElements = 65536;  // of a row loop that pay for waking a thread

  const Real* values(const std::string& name) const { return inputs_[name].template const_data_ptr<Real>(); }

  void fill_surface() const {
    const auto* const keys = inputs_["cell"].const_data_ptr<std::int64_t>();
    const Real *const energy = values("energy"), *const weights = values("cell_weight");
    for (std::int64_t row = 0; row < rows_; ++row) {
      Real* const surface = data<Real>(surface_) + row * cells_;
      std::fill_n(surface, cells_, Real(0));
      for (std::int64_t i = row * entries_; i < (row + 1) * entries_; ++i)
        if (is_entry(keys[i], cells_))
          surface[keys[i]] = cell_operand(energy[i], weights[keys[i]], round_);
        else if (keys[i] != kNoEntry)
          refuse_key(keys[i], cells_);
    }
  }

  const bool round_;
  const std::int64_t rows_, cells_, entries_;
  NamedTensors inputs_, results_;
  at::Tensor surface_, products_[2], hidden_[2];
  ActivationLayer<Real> layers_[2];
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuCollector<double>>(inputs, setting);
  return std::make_unique<CpuCollector<float>>(inputs, setting);
}

}  // namespace twinbench::energy_flow::output_collector
