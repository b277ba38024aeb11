// Saves checkpoints beside the training: one copy into a staging buffer, then a thread compresses and writes.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/formats/checkpoint_file.h"
#include "src/formats/checkpoint_name.h"

namespace twinbench {

class CheckpointWriter {
 public:
  enum class WhenBusy { kWait, kSkip };  // what a save does while the one before is being written

  struct Options {
    std::string folder;
    SectionCodec codec = SectionCodec::kPlanes;
    CheckpointRetention retention;
    WhenBusy when_busy = WhenBusy::kWait;
  };

  // What happened so far; `failed` are saves that the system refused: the training goes on, and the files before stay.
  struct Tally {
    std::int64_t written = 0, failed = 0, waited = 0, skipped = 0, deleted = 0;
    std::uint64_t bytes = 0;  // of the files written
    std::string last_failure;
  };

  // `layout`: names, types and shapes of the sections, whose bytes lie in that order in the staging buffer. Starts the
  // thread, numbers on from the folder's files. Throws kInputOutput.
  CheckpointWriter(Options options, std::vector<TensorBytes> layout);
  ~CheckpointWriter();  // finishes
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Calls `copy` with the staging buffer, and returns; the file appears later. False: skipped, nothing was called.
  bool save(const CheckpointName& name, CheckpointMetadata metadata,
            const std::function<void(std::span<std::uint8_t>)>& copy);
  // Waits until nothing is in flight.
  void finish();
  Tally tally() const;

 private:
  struct Job {
    std::string file;
    CheckpointMetadata metadata;
    std::uint64_t sequence = 0;
  };
  void work();
  void write(const Job& job);

  Options options_;
  std::vector<TensorBytes> sections_;
  std::vector<std::uint8_t> staging_;
  std::uint64_t next_sequence_ = 1;
  PlaneCompressor compressor_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Job> job_;  // in flight: the staging buffer is the thread's
  bool ends_ = false;
  Tally tally_;
  std::thread thread_;
};

}  // namespace twinbench
