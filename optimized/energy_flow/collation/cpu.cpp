// Optimized collation: rows gathered straight into a slot that stays, texts as views; no operator, no allocation.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "src/energy_flow/common/sentence_pairs.h"
#include "src/formats/batch_order.h"

namespace twinbench::energy_flow::collation {
namespace {

// Below this many bytes to copy, waking another thread (a few us) costs more than it saves.
constexpr std::int64_t kGrainBytes = std::int64_t{1} << 20;

class CollationOptimized : public Runnable {
 public:
  CollationOptimized(const NamedTensors& values, const Setting& setting)
      : inputs_(values["input_embeddings"].contiguous()),
        targets_(values["target_embeddings"].contiguous()),
        text_bytes_(values["text_bytes"].contiguous()),
        text_offsets_(values["text_offsets"].contiguous()) {
    const std::int64_t rows = inputs_.size(0);
    BatchPlan plan{rows, setting.size("batch")};
    const std::int64_t batches = plan.batches();
    std::int64_t count = 0;
    if (batches > 0) {
      const std::int64_t epoch = setting.size("epoch") + setting.size("batch_index") / batches,
                         index = setting.size("batch_index") % batches;
      count = plan.rows_of(index);
      const bool shuffle = setting.on("shuffle");
      const auto order = shuffle ? epoch_permutation(rows, epoch, static_cast<std::uint64_t>(setting.size("seed")))
                                 : std::vector<std::uint32_t>();
      for (std::int64_t i = index * plan.batch; i < index * plan.batch + count; ++i)
        rows_.push_back(shuffle ? order[static_cast<std::size_t>(i)] : i);
    }
    x_ = at::empty({count, inputs_.size(1)}, inputs_.options());
    y_ = at::empty({count, inputs_.size(1)}, inputs_.options());
    texts_.resize(static_cast<std::size_t>(2 * count));
    row_bytes_ = static_cast<std::size_t>(inputs_.size(1)) * inputs_.element_size();
    grain_rows_ =
        std::max<std::int64_t>(1, kGrainBytes / std::max<std::int64_t>(1, static_cast<std::int64_t>(2 * row_bytes_)));
  }

  void run() override {
    at::parallel_for(0, static_cast<std::int64_t>(rows_.size()), grain_rows_,
                     [this](std::int64_t begin, std::int64_t end) {
                       gather(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
                     });
  }

  NamedTensors outputs() override {
    NamedTensors outputs{{"x", x_}, {"y", y_}, {"rows", at::tensor(at::ArrayRef<std::int64_t>(rows_), at::kLong)}};
    energy_flow::set_texts(outputs, texts_);
    return outputs;
  }

 private:
  void gather(std::size_t begin, std::size_t end) {
    const auto *inputs = static_cast<const char*>(inputs_.const_data_ptr()),
               *targets = static_cast<const char*>(targets_.const_data_ptr());
    auto *x = static_cast<char*>(x_.mutable_data_ptr()), *y = static_cast<char*>(y_.mutable_data_ptr());
    const auto* letters = reinterpret_cast<const char*>(text_bytes_.const_data_ptr<std::uint8_t>());
    const auto* offsets = text_offsets_.const_data_ptr<std::int64_t>();
    for (std::size_t i = begin; i < end; ++i) {
      const auto row = static_cast<std::size_t>(rows_[i]);
      std::memcpy(x + i * row_bytes_, inputs + row * row_bytes_, row_bytes_);
      std::memcpy(y + i * row_bytes_, targets + row * row_bytes_, row_bytes_);
      const std::int64_t* offset = offsets + 2 * row;
      texts_[2 * i] = std::string_view(letters + offset[0], static_cast<std::size_t>(offset[1] - offset[0]));
      texts_[2 * i + 1] = std::string_view(letters + offset[1], static_cast<std::size_t>(offset[2] - offset[1]));
    }
  }

  at::Tensor inputs_, targets_, text_bytes_, text_offsets_, x_, y_;
  std::vector<std::int64_t> rows_;
  std::vector<std::string_view> texts_;
  std::size_t row_bytes_ = 0;
  std::int64_t grain_rows_ = 1;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CollationOptimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::collation
