// What the versions of energy_flow.checkpoint have in common: a stand-in for the training between saves, and results.
#pragma once

#include <ATen/ATen.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "src/common/error.h"
#include "src/component.h"
#include "src/energy_flow/common/saved_state.h"
#include "src/formats/checkpoint_name.h"
#include "src/formats/file_io.h"

namespace twinbench::energy_flow {

// Trains some windows, saves, trains, saves, ...; a version says how a save is made and read back. Every run begins in
// an empty folder, and ends when all saves are on the disk.
class SavedTraining : public Runnable {
 public:
  // Throws what saved_sections and check_checkpoint_fields throw: another configuration shall not restore it.
  SavedTraining(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        saves_(setting.size("saves")),
        windows_(setting.size("windows")),
        retention_{static_cast<int>(setting.option("keep_best")), static_cast<int>(setting.option("keep_latest"))} {
    for (const char* name : {"parameters", "first_moment", "second_moment", "counts", "schedule"})
      live_.set(name, inputs[name].clone(at::MemoryFormat::Contiguous));
    for (const char* name : {"frozen", "metrics"}) live_.set(name, inputs[name]);
    live_.set("history", at::zeros({saves_}, at::kDouble));
    sections_ = saved_sections(live_, inputs["offsets"]);
    add_checkpoint_fields(metadata_, configuration_of(inputs));
    warnings_ = check_checkpoint_fields(metadata_, configuration_of(inputs, "restore_"), setting.on("strict_restore"));
  }

  void reset() override {
    for (const char* name : {"parameters", "first_moment", "second_moment", "counts", "schedule"})
      live_[name].copy_(inputs_[name]);
  }

  void run() override {
    for (const NamedCheckpoint& one : list_checkpoints(folder())) ::unlink((folder() + "/" + one.file).c_str());
    names_.clear();
    stalls_s_.clear();
    for (std::int64_t index = 0; index < saves_; ++index) {
      for (std::int64_t window = 0; window < windows_; ++window) train();
      const CheckpointName name = end_epoch(index);
      names_.push_back(checkpoint_name(name));
      const auto before = std::chrono::steady_clock::now();
      save(index, name);
      stalls_s_.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    }
    finish();
  }

  NamedTensors outputs() override {
    NamedTensors results;
    for (const char* name : {"parameters", "first_moment", "second_moment", "counts", "schedule"})
      results.set(name, live_[name]);
    const std::vector<bool> kept = retained();
    for (const auto& [name, tensor] : live_) {
      std::vector<std::int64_t> shape = tensor.sizes().vec();
      shape.insert(shape.begin(), saves_);
      results.set("saved_" + name, at::zeros(shape, tensor.options()));
    }
    at::Tensor flags = at::zeros({saves_}, at::kBool);
    std::string names;
    for (std::int64_t index = 0; index < saves_; ++index) {
      if (!kept[static_cast<std::size_t>(index)]) continue;
      flags[index].fill_(true);
      names += name_of_save(index) + "\n";
      NamedTensors into;
      for (const auto& [name, tensor] : live_) into.set(name, results["saved_" + name].select(0, index));
      load(index, into);
    }
    at::Tensor letters = at::empty({static_cast<std::int64_t>(names.size())}, at::kByte);
    std::copy(names.begin(), names.end(), letters.mutable_data_ptr<std::uint8_t>());
    const std::vector<NamedCheckpoint> files = list_checkpoints(folder());
    results.set("retained", flags);
    results.set("names", letters);
    results.set("warnings", at::full({1}, static_cast<std::int64_t>(warnings_.size()), at::kLong));
    results.set("failed", at::full({1}, failures(), at::kLong));
    results.set("stall_seconds", at::tensor(stalls_s_, at::kDouble));
    results.set("files_left", at::full({1}, static_cast<double>(files.size()), at::kDouble));
    return results;
  }

 protected:
  // The state as it is now; the training goes on, and changes it, as soon as this returns.
  virtual void save(std::int64_t index, const CheckpointName& name) = 0;
  virtual void finish() {}  // until all saves are on the disk, or failed
  // Of each save, whether the rule of retention leaves it.
  virtual std::vector<bool> retained() = 0;
  // Reads a save into contiguous tensors, by the names of the saved ones.
  virtual void load(std::int64_t index, const NamedTensors& into) = 0;
  virtual std::int64_t failures() const { return 0; }

  std::int64_t saves() const { return saves_; }
  const std::string& folder() const { return folder_.path(); }
  const std::string& name_of_save(std::int64_t index) const { return names_[static_cast<std::size_t>(index)]; }
  std::string file_of_save(std::int64_t index) const { return folder_.file(name_of_save(index)); }
  const std::vector<SavedSection>& sections() const { return sections_; }
  // The live tensor of a section, which may lie anyhow where it is an input.
  const at::Tensor& live(const std::string& tensor) const { return live_[tensor]; }
  const CheckpointMetadata& metadata() const { return metadata_; }
  const CheckpointRetention& retention() const { return retention_; }

 private:
  // One window: every element is written, exactly in every precision, so that a save that is torn shows.
  void train() {
    for (const char* name : {"parameters", "first_moment", "second_moment"}) live_[name].neg_();
    std::int64_t* const counts = live_["counts"].mutable_data_ptr<std::int64_t>();
    for (const int count : {kAttempt, kGlobalStep, kCursor, kAppliedUpdates}) ++counts[count];
  }

  // Epochs end with a save each.
  CheckpointName end_epoch(std::int64_t index) {
    std::int64_t& epoch = live_["counts"].mutable_data_ptr<std::int64_t>()[kEpoch];
    double* const schedule = live_["schedule"].mutable_data_ptr<double>();
    const double loss = inputs_["loss"].const_data_ptr<double>()[index * inputs_["loss"].stride(0)];
    const auto* const critical = inputs_["critical"].const_data_ptr<std::int64_t>();
    const std::int64_t step = inputs_["critical"].stride(0), cells = critical[0] * critical[step] * critical[2 * step];
    const bool best = std::isfinite(loss) && loss < schedule[kBestLoss];
    if (best) schedule[kBestLoss] = loss;
    if (index == 0) live_["history"].zero_();
    live_["history"].mutable_data_ptr<double>()[index] = loss;
    const std::int64_t time = inputs_["time"].const_data_ptr<std::int64_t>()[index * inputs_["time"].stride(0)];
    return {best, checkpoint_type(cells), time, ++epoch, loss, ""};
  }

  NamedTensors inputs_, live_;
  std::int64_t saves_, windows_;
  CheckpointRetention retention_;
  std::vector<SavedSection> sections_;
  CheckpointMetadata metadata_;
  std::vector<std::string> warnings_, names_;
  std::vector<double> stalls_s_;
  TemporaryDirectory folder_;
};

}  // namespace twinbench::energy_flow
