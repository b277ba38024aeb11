// Baseline of collation: per item fresh tensors and strings, then a batch tensor filled row by row.
#include <ATen/ATen.h>

#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::collation {
namespace {

struct Item {
  at::Tensor x, y;
  std::string input, target;
};

// The shuffle as the specification words it.
std::vector<std::int64_t> shuffled(std::int64_t rows, std::int64_t epoch, std::uint64_t seed) {
  std::vector<std::int64_t> order;
  for (std::int64_t row = 0; row < rows; ++row) order.push_back(row);
  for (std::int64_t i = rows - 1; i > 0; --i) {
    const auto words = philox(seed, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(epoch), 0, 3u << 16);
    const auto j = (static_cast<std::uint64_t>(words.w[0]) * static_cast<std::uint64_t>(i + 1)) >> 32;
    std::swap(order[static_cast<std::size_t>(i)], order[j]);
  }
  return order;
}

class CollationBaseline : public Runnable {
 public:
  CollationBaseline(const NamedTensors& values, const Setting& setting)
      : inputs_(values["input_embeddings"]),
        targets_(values["target_embeddings"]),
        stack_only_(setting.on("stack_only")) {
    const at::Tensor bytes = values["text_bytes"].contiguous(), offsets = values["text_offsets"].contiguous();
    const auto* letters = reinterpret_cast<const char*>(bytes.const_data_ptr<std::uint8_t>());
    const auto* offset = offsets.const_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i + 1 < offsets.numel(); ++i)
      dataset_texts_.emplace_back(letters + offset[i], letters + offset[i + 1]);
    const std::int64_t rows = inputs_.size(0), batch = setting.size("batch"), batches = (rows + batch - 1) / batch;
    if (rows == 0) return;
    const std::int64_t epoch = setting.size("epoch") + setting.size("batch_index") / batches,
                       index = setting.size("batch_index") % batches;
    auto order = shuffled(rows, epoch, static_cast<std::uint64_t>(setting.size("seed")));
    if (!setting.on("shuffle")) std::sort(order.begin(), order.end());
    rows_.assign(order.begin() + index * batch, order.begin() + std::min((index + 1) * batch, rows));
  }

  void run() override {
    texts_.clear();
    if (rows_.empty()) return;
    std::vector<Item> items;
    for (const std::int64_t row : rows_) items.push_back(item(row));
    const auto count = static_cast<std::int64_t>(items.size());
    x_ = at::empty({count, inputs_.size(1)}, inputs_.options());
    y_ = at::empty({count, inputs_.size(1)}, inputs_.options());
    for (std::int64_t i = 0; i < count; ++i) {
      x_.select(0, i).copy_(items[static_cast<std::size_t>(i)].x);
      y_.select(0, i).copy_(items[static_cast<std::size_t>(i)].y);
    }
    for (auto& element : items) {
      texts_.push_back(std::move(element.input));
      texts_.push_back(std::move(element.target));
    }
  }

  NamedTensors outputs() override {
    const at::Tensor none = at::empty({0, inputs_.size(1)}, inputs_.options());
    NamedTensors outputs{{"x", rows_.empty() ? none : x_},
                         {"y", rows_.empty() ? none : y_},
                         {"rows", at::tensor(at::ArrayRef<std::int64_t>(rows_), at::kLong)}};
    energy_flow::set_texts(outputs, texts_);
    return outputs;
  }

 private:
  // With stack_only the item is a view, as an integer index really gives; otherwise a copy, as the document says.
  Item item(std::int64_t row) const {
    at::Tensor x = inputs_.select(0, row), y = targets_.select(0, row);
    if (!stack_only_) {
      x = x.clone();
      y = y.clone();
    }
    return {x, y, dataset_texts_[static_cast<std::size_t>(2 * row)],
            dataset_texts_[static_cast<std::size_t>(2 * row + 1)]};
  }

  at::Tensor inputs_, targets_;
  bool stack_only_;
  std::vector<std::string> dataset_texts_;
  std::vector<std::int64_t> rows_;
  at::Tensor x_, y_;
  std::vector<std::string> texts_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CollationBaseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::collation
