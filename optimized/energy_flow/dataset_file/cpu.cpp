// Optimized dataset_file: the file mapped, one parallel pass for checksums and row validity, rows used where they lie.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <optional>

#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::dataset_file {
namespace {

class DatasetFileOptimized : public Runnable {
 public:
  explicit DatasetFileOptimized(const NamedTensors& inputs) : source_(inputs, false) {}

  void run() override {
    file_.emplace(source_.path());
    validity_ = verify_efds(file_->view(), at::get_num_threads());
  }

  NamedTensors outputs() override {
    const EfdsView& view = file_->view();
    const auto copied = [](ByteSpan bytes, at::IntArrayRef shape, at::ScalarType type) {
      at::Tensor tensor = at::empty(shape, type);
      if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
      return tensor;
    };
    const ByteSpan blob = view.section(kEfdsBlob);
    return {{"input_embeddings", copied(view.section(kEfdsInputs), {view.rows(), view.width()}, at::kFloat)},
            {"target_embeddings", copied(view.section(kEfdsTargets), {view.rows(), view.width()}, at::kFloat)},
            {"text_bytes", copied(blob, {static_cast<std::int64_t>(blob.size())}, at::kByte)},
            {"text_offsets", copied(view.section(kEfdsIndex), {2 * view.rows() + 1}, at::kLong)},
            {"valid", copied(validity_.bitmap, {static_cast<std::int64_t>(validity_.bitmap.size())}, at::kByte)},
            {"dropped", at::full({1}, static_cast<std::int64_t>(validity_.dropped.size()), at::kLong)}};
  }

 private:
  energy_flow::PairFile source_;
  std::optional<EfdsFile> file_;
  RowValidity validity_;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting&) {
  return std::make_unique<DatasetFileOptimized>(inputs);
}

}  // namespace twinbench::energy_flow::dataset_file
