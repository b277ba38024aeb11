// Optimized dataset_loader: a mapped file, worker threads, a ring of slots; the first batch waits for its own rows
// only.
#include <ATen/ATen.h>

#include <optional>

#include "optimized/energy_flow/dataset_loader/streaming_loader.h"
#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::dataset_loader {
namespace {

LoaderOptions loader_options(const Setting& setting) {
  LoaderOptions options;
  options.batch = setting.size("batch");
  options.workers = static_cast<int>(setting.size("workers"));
  options.prefetch_depth = static_cast<int>(setting.size("prefetch_depth"));
  options.seed = static_cast<std::uint64_t>(setting.size("seed"));
  options.shuffle = setting.on("shuffle");
  options.start = {setting.size("epoch"), 0};
  options.max_batches_per_epoch = setting.size("batches");
  return options;
}

class DatasetLoaderOptimized : public Runnable {
 public:
  DatasetLoaderOptimized(const NamedTensors& inputs, const Setting& setting)
      : source_(inputs, true), options_(loader_options(setting)) {
    options_.expected_width = setting.size("width");
    const StreamingLoader loader(source_.path(), options_);
    const BatchPlan& plan = loader.plan();
    const std::int64_t rows = std::min(plan.batches() * plan.batch, plan.rows);
    x_ = at::empty({rows, loader.file().width()}, at::kFloat);
    y_ = at::empty({rows, loader.file().width()}, at::kFloat);
    rows_.reserve(static_cast<std::size_t>(rows));
    texts_.reserve(static_cast<std::size_t>(2 * rows));
  }

  void run() override {
    rows_.clear();
    texts_.clear();
    loader_.emplace(source_.path(), options_);  // joins the workers of the run before
    float *x = x_.mutable_data_ptr<float>(), *y = y_.mutable_data_ptr<float>();
    const std::int64_t width = loader_->file().width();
    while (const LoadedBatch* batch = loader_->next()) {
      // The consumer's copy out of the slot, which on a GPU is the asynchronous one to the device.
      const auto elements = static_cast<std::size_t>(batch->size() * width);
      std::memcpy(x, batch->inputs, elements * sizeof(float));
      std::memcpy(y, batch->targets, elements * sizeof(float));
      x += elements;
      y += elements;
      rows_.insert(rows_.end(), batch->rows.begin(), batch->rows.end());
      texts_.insert(texts_.end(), batch->texts.begin(), batch->texts.end());
    }
  }

  NamedTensors outputs() override {
    NamedTensors outputs{{"x", x_}, {"y", y_}, {"rows", at::tensor(at::ArrayRef<std::int64_t>(rows_), at::kLong)}};
    energy_flow::set_texts(outputs, texts_);
    return outputs;
  }

 private:
  energy_flow::PairFile source_;
  LoaderOptions options_;
  at::Tensor x_, y_;
  std::vector<std::int64_t> rows_;
  std::vector<std::string_view> texts_;  // into the file that loader_ maps
  std::optional<StreamingLoader> loader_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<DatasetLoaderOptimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::dataset_loader
