// Stock LibTorch: all tensors in a dictionary, pickled as torch.save does it, and the bytes written.
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>

#include "src/energy_flow/common/saved_training.h"

namespace twinbench::energy_flow::checkpoint {
namespace {

class CheckpointLibrary : public SavedTraining {
 public:
  using SavedTraining::SavedTraining;

 private:
  void save(std::int64_t index, const CheckpointName& name) override {
    if (index == 0) saved_.clear();
    c10::Dict<std::string, at::Tensor> tensors;
    for (const char* tensor : kSavedTensors) tensors.insert(tensor, live(tensor));
    const std::vector<char> bytes = torch::jit::pickle_save(tensors);
    std::ofstream file(file_of_save(index), std::ios::binary | std::ios::trunc);
    if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())))
      throw Error(ErrorKind::kInputOutput, file_of_save(index), "short write", "free space");
    saved_.push_back({name_of_save(index), name, static_cast<std::uint64_t>(index)});
    for (const std::string& old : expendable_checkpoints(saved_, retention(), name_of_save(index))) {
      ::unlink((folder() + "/" + old).c_str());
      std::erase_if(saved_, [&](const NamedCheckpoint& one) { return one.file == old; });
    }
  }

  std::vector<bool> retained() override {
    std::vector<bool> kept(static_cast<std::size_t>(saves()));
    for (const NamedCheckpoint& one : saved_) kept[one.sequence] = true;
    return kept;
  }

  void load(std::int64_t index, const NamedTensors& into) override {
    std::ifstream stream(file_of_save(index), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
    const auto tensors = torch::jit::pickle_load(bytes).toGenericDict();
    for (const char* tensor : kSavedTensors) into[tensor].copy_(tensors.at(std::string(tensor)).toTensor());
  }

  std::vector<NamedCheckpoint> saved_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CheckpointLibrary>(inputs, setting);
}

}  // namespace twinbench::energy_flow::checkpoint
