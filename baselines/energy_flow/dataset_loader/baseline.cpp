// Baseline of dataset_loader: read everything, copy everything to the device, then assemble batches there item by item.
#include <ATen/ATen.h>

#include <fstream>
#include <numeric>

#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::dataset_loader {
namespace {

struct Item {
  at::Tensor x, y;
  std::string input, target;
};

struct Batch {
  at::Tensor x, y;
};

class DatasetLoaderBaseline : public Runnable {
 public:
  DatasetLoaderBaseline(const NamedTensors& inputs, const Setting& setting)
      : source_(inputs, true),
        batch_(setting.size("batch")),
        epoch_(setting.size("epoch")),
        wanted_(setting.size("batches")),
        seed_(static_cast<std::uint64_t>(setting.size("seed"))),
        shuffle_(setting.on("shuffle")) {}

  void run() override {
    batches_.clear();
    texts_.clear();
    rows_.clear();
    load_everything();
    const std::vector<std::int64_t> order = epoch_order();
    const auto available = static_cast<std::int64_t>(order.size());
    std::int64_t count = (available + batch_ - 1) / batch_;
    if (wanted_ > 0 && wanted_ < count) count = wanted_;
    for (std::int64_t batch = 0; batch < count; ++batch) {
      std::vector<Item> items;
      for (std::int64_t i = batch * batch_; i < std::min((batch + 1) * batch_, available); ++i)
        items.push_back(item(order[static_cast<std::size_t>(i)]));
      batches_.push_back(stack(items));
      for (auto& element : items) {
        texts_.push_back(std::move(element.input));
        texts_.push_back(std::move(element.target));
      }
    }
  }

  NamedTensors outputs() override {
    std::vector<at::Tensor> x = {inputs_.narrow(0, 0, 0)}, y = {targets_.narrow(0, 0, 0)};
    for (const Batch& batch : batches_) {
      x.push_back(batch.x);
      y.push_back(batch.y);
    }
    NamedTensors outputs{
        {"x", at::cat(x)}, {"y", at::cat(y)}, {"rows", at::tensor(at::ArrayRef<std::int64_t>(rows_), at::kLong)}};
    energy_flow::set_texts(outputs, texts_);
    return outputs;
  }

 private:
  void load_everything() {
    std::ifstream stream(source_.path(), std::ios::binary | std::ios::ate);
    file_.resize(static_cast<std::size_t>(stream.tellg()));
    stream.seekg(0);
    if (!stream.read(file_.data(), static_cast<std::streamsize>(file_.size()))) {
      throw Error(ErrorKind::kInputOutput, source_.path(), "short read", "copy the file again");
    }
    const auto rows = static_cast<std::int64_t>(field<std::uint64_t>(8));
    const std::int64_t width = field<std::uint32_t>(16);
    // The copies to the device; blocking, from pageable memory.
    inputs_ = at::empty({rows, width}, at::kFloat);
    targets_ = at::empty({rows, width}, at::kFloat);
    if (rows == 0) return;
    inputs_.copy_(at::from_blob(file_.data() + field<std::uint64_t>(24), {rows, width}, at::kFloat));
    targets_.copy_(at::from_blob(file_.data() + field<std::uint64_t>(32), {rows, width}, at::kFloat));
  }

  std::vector<std::int64_t> epoch_order() const {
    const RowValidity validity = load_validity(EfdsFile(source_.path()));
    std::vector<std::int64_t> order;
    for (std::int64_t row = 0; row < validity.rows; ++row) {
      if (validity.valid(row)) order.push_back(row);
    }
    for (std::int64_t i = static_cast<std::int64_t>(order.size()) - 1; shuffle_ && i > 0; --i) {
      const auto words = philox(seed_, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(epoch_), 0, 3u << 16);
      const auto j = (static_cast<std::uint64_t>(words.w[0]) * static_cast<std::uint64_t>(i + 1)) >> 32;
      std::swap(order[static_cast<std::size_t>(i)], order[j]);
    }
    return order;
  }

  Item item(std::int64_t row) {
    rows_.push_back(row);
    return {inputs_.select(0, row).clone(), targets_.select(0, row).clone(), text(2 * row), text(2 * row + 1)};
  }

  Batch stack(const std::vector<Item>& items) const {
    const auto count = static_cast<std::int64_t>(items.size());
    Batch batch{at::empty({count, inputs_.size(1)}, at::kFloat), at::empty({count, inputs_.size(1)}, at::kFloat)};
    for (std::int64_t i = 0; i < count; ++i) {
      batch.x.select(0, i).copy_(items[static_cast<std::size_t>(i)].x);
      batch.y.select(0, i).copy_(items[static_cast<std::size_t>(i)].y);
    }
    return batch;
  }

  std::string text(std::int64_t index) const {
    const std::size_t entry = field<std::uint64_t>(40) + static_cast<std::size_t>(index) * 8;
    const auto begin = field<std::uint64_t>(entry), end = field<std::uint64_t>(entry + 8);
    return {file_.data() + field<std::uint64_t>(48) + begin, end - begin};
  }

  template <typename T>
  T field(std::size_t at) const {
    T value;
    std::memcpy(&value, file_.data() + at, sizeof(T));
    return value;
  }

  energy_flow::PairFile source_;
  std::int64_t batch_, epoch_, wanted_;
  std::uint64_t seed_;
  bool shuffle_;
  std::vector<char> file_;
  at::Tensor inputs_, targets_;
  std::vector<Batch> batches_;
  std::vector<std::string> texts_;
  std::vector<std::int64_t> rows_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<DatasetLoaderBaseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::dataset_loader
