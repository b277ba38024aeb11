// Optimized checkpoint: one parallel copy into a staging buffer; compressed, written and cleaned up in the background.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/energy_flow/common/saved_training.h"
#include "src/formats/checkpoint_writer.h"

namespace twinbench::energy_flow::checkpoint {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{1} << 20;

ElementType element_of(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kLong     ? ElementType::kI64
         : tensor.scalar_type() == at::kDouble ? ElementType::kF64
                                               : ElementType::kF32;
}

void copy_in_parallel(std::uint8_t* to, const std::uint8_t* from, std::int64_t bytes) {
  at::parallel_for(0, bytes, kPieceBytes, [=](std::int64_t begin, std::int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}

// A tensor's bytes into the staging buffer; returns where the next one's begin.
std::uint8_t* copied(const at::Tensor& tensor, std::uint8_t* to) {
  if (tensor.is_contiguous())
    copy_in_parallel(to, static_cast<const std::uint8_t*>(tensor.const_data_ptr()),
                     static_cast<std::int64_t>(tensor.nbytes()));
  else  // an input that lies otherwise
    at::from_blob(to, tensor.sizes(), tensor.options()).copy_(tensor);
  return to + tensor.nbytes();
}

class CheckpointOptimized : public SavedTraining {
 public:
  CheckpointOptimized(const NamedTensors& inputs, const Setting& setting) : SavedTraining(inputs, setting) {
    std::vector<TensorBytes> layout;
    for (const SavedSection& section : sections())
      layout.push_back({section.name, element_of(live(section.tensor)), {section.place.count}, {}});
    CheckpointWriter::Options options;
    options.folder = folder();
    options.codec = setting.on("compress") ? SectionCodec::kPlanes : SectionCodec::kStored;
    options.retention = retention();
    writer_.emplace(options, std::move(layout));
  }

 private:
  void save(std::int64_t, const CheckpointName& name) override {
    writer_->save(name, metadata(), [this](std::span<std::uint8_t> staging) {
      std::uint8_t* to = staging.data();
      for (const char* tensor : kSavedTensors) to = copied(live(tensor), to);
    });
  }

  void finish() override {
    writer_->finish();
    const CheckpointWriter::Tally now = writer_->tally();
    failed_ = now.failed - failed_before_;
    failed_before_ = now.failed;
  }
  std::int64_t failures() const override { return failed_; }

  std::vector<bool> retained() override {
    const std::vector<NamedCheckpoint> there = list_checkpoints(folder());
    std::vector<bool> kept;
    for (std::int64_t index = 0; index < saves(); ++index)
      kept.push_back(std::any_of(there.begin(), there.end(),
                                 [&](const NamedCheckpoint& one) { return one.file == name_of_save(index); }));
    return kept;
  }

  void load(std::int64_t index, const NamedTensors& into) override {
    const CheckpointFile file(file_of_save(index));
    for (const SavedSection& section : sections()) {
      const at::Tensor tensor = into[section.tensor].narrow(0, section.place.first, section.place.count);
      file.view().read(section.name, element_of(tensor), {section.place.count},
                       {static_cast<std::uint8_t*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    }
  }

  std::optional<CheckpointWriter> writer_;  // last: its thread ends before the rest does
  std::int64_t failed_ = 0, failed_before_ = 0;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CheckpointOptimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::checkpoint
