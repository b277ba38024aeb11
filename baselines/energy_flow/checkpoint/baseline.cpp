// Baseline of checkpoint: the training reads tensor by tensor and writes each as it is, over the file of that name.
#include <zlib.h>

#include <fstream>

#include "src/energy_flow/common/saved_training.h"
#include "src/formats/checkpoint_layout.h"

namespace twinbench::energy_flow::checkpoint {
namespace {

ElementType stored_type(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kLong     ? ElementType::kI64
         : tensor.scalar_type() == at::kDouble ? ElementType::kF64
                                               : ElementType::kF32;
}

class CheckpointBaseline : public SavedTraining {
 public:
  CheckpointBaseline(const NamedTensors& inputs, const Setting& setting)
      : SavedTraining(inputs, setting),
        mapper_left_out_(setting.on("mapper_not_saved")),
        history_left_out_(setting.on("history_not_saved")) {}

 private:
  void save(std::int64_t index, const CheckpointName& name) override {
    if (index == 0) saved_.clear();
    std::ofstream file(file_of_save(index), std::ios::binary | std::ios::trunc);
    CheckpointIndex contents{static_cast<std::uint64_t>(index) + 1, metadata(), {}};
    const auto write = [&](const void* bytes, std::size_t count) {
      if (!file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count)))
        throw Error(ErrorKind::kInputOutput, file_of_save(index), "short write", "free space");
      return count;
    };
    std::uint64_t at = write(checkpoint_header(contents.sequence).data(), kCheckpointHeaderBytes);
    for (const SavedSection& section : sections()) {
      if ((mapper_left_out_ && section.name == "frozen") || (history_left_out_ && section.name == "history")) continue;
      // The blocking read; on the host a copy as well.
      const at::Tensor tensor =
          live(section.tensor).narrow(0, section.place.first, section.place.count).clone(at::MemoryFormat::Contiguous);
      const auto* const bytes = static_cast<const std::uint8_t*>(tensor.const_data_ptr());
      contents.sections.push_back({section.name,
                                   stored_type(tensor),
                                   {tensor.numel()},
                                   SectionCodec::kStored,
                                   tensor.nbytes(),
                                   at,
                                   tensor.nbytes(),
                                   static_cast<std::uint32_t>(::crc32_z(0, bytes, tensor.nbytes()))});
      at += write(bytes, tensor.nbytes());
    }
    const std::string text = checkpoint_index_text(contents);
    write(text.data(), text.size());
    write(checkpoint_footer(at, text).data(), kCheckpointFooterBytes);
    saved_.push_back({name_of_save(index), name, contents.sequence});
  }

  // It deletes nothing: what the rule would leave.
  std::vector<bool> retained() override {
    const auto count = static_cast<std::int64_t>(saved_.size());
    std::vector<bool> kept(saved_.size());
    for (std::int64_t i = std::max<std::int64_t>(0, count - std::max(1, retention().keep_latest)); i < count; ++i)
      kept[static_cast<std::size_t>(i)] = true;
    std::vector<std::pair<double, std::int64_t>> best;  // by the loss in the name; the later of equals first
    for (std::int64_t i = 0; i < count; ++i)
      if (const CheckpointName& name = saved_[static_cast<std::size_t>(i)].name; name.best)
        best.emplace_back(std::round(name.loss * 1e4) / 1e4, -i);
    std::sort(best.begin(), best.end());
    for (std::size_t i = 0; i < best.size() && i < static_cast<std::size_t>(retention().keep_best); ++i)
      kept[static_cast<std::size_t>(-best[i].second)] = true;
    return kept;
  }

  void load(std::int64_t index, const NamedTensors& into) override {
    std::ifstream stream(file_of_save(index), std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(stream), {}};
    const CheckpointIndex contents = parse_checkpoint(as_bytes(file));
    for (const SavedSection& section : sections())
      for (const CheckpointSection& there : contents.sections) {
        if (there.name != section.name || there.bytes == 0) continue;
        at::Tensor tensor = into[section.tensor].narrow(0, section.place.first, section.place.count);
        std::memcpy(tensor.mutable_data_ptr(), file.data() + there.offset, there.bytes);
      }
  }

  bool mapper_left_out_, history_left_out_;
  std::vector<NamedCheckpoint> saved_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CheckpointBaseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::checkpoint
