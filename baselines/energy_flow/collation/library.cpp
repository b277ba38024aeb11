// Stock LibTorch collation: one index_select a side into a tensor that stays.
#include <ATen/ATen.h>

#include "src/energy_flow/common/sentence_pairs.h"
#include "src/formats/batch_order.h"

namespace twinbench::energy_flow::collation {
namespace {

class CollationLibrary : public Runnable {
 public:
  CollationLibrary(const NamedTensors& values, const Setting& setting)
      : inputs_(values["input_embeddings"]),
        targets_(values["target_embeddings"]),
        text_bytes_(values["text_bytes"].contiguous()),
        text_offsets_(values["text_offsets"].contiguous()) {
    const std::int64_t rows = inputs_.size(0), batch = setting.size("batch"), batches = (rows + batch - 1) / batch;
    std::int64_t first = 0, count = 0, epoch = 0;
    if (rows > 0) {
      epoch = setting.size("epoch") + setting.size("batch_index") / batches;
      first = setting.size("batch_index") % batches * batch;
      count = std::min(batch, rows - first);
    }
    at::Tensor order = at::arange(rows, at::kLong);
    if (setting.on("shuffle")) {
      const auto permutation = epoch_permutation(rows, epoch, static_cast<std::uint64_t>(setting.size("seed")));
      std::copy(permutation.begin(), permutation.end(), order.mutable_data_ptr<std::int64_t>());
    }
    order_ = order.narrow(0, first, count).clone();
    rows_ = at::empty_like(order_);
    x_ = at::empty({count, inputs_.size(1)}, inputs_.options());
    y_ = at::empty({count, inputs_.size(1)}, inputs_.options());
    texts_.resize(static_cast<std::size_t>(2 * count));
  }

  void run() override {
    if (order_.numel() == 0) return;
    rows_.copy_(order_);
    at::index_select_out(x_, inputs_, 0, order_);
    at::index_select_out(y_, targets_, 0, order_);
    const auto* letters = reinterpret_cast<const char*>(text_bytes_.const_data_ptr<std::uint8_t>());
    const auto* offsets = text_offsets_.const_data_ptr<std::int64_t>();
    const auto* rows = order_.const_data_ptr<std::int64_t>();
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const std::int64_t* offset = offsets + 2 * rows[i / 2] + static_cast<std::int64_t>(i % 2);
      texts_[i] = std::string_view(letters + offset[0], static_cast<std::size_t>(offset[1] - offset[0]));
    }
  }

  NamedTensors outputs() override {
    NamedTensors outputs{{"x", x_}, {"y", y_}, {"rows", rows_}};
    energy_flow::set_texts(outputs, texts_);
    return outputs;
  }

 private:
  at::Tensor inputs_, targets_, text_bytes_, text_offsets_, order_, rows_, x_, y_;
  std::vector<std::string_view> texts_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CollationLibrary>(inputs, setting);
}

}  // namespace twinbench::energy_flow::collation
