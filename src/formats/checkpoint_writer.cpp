// The background writer of checkpoints.
#include "src/formats/checkpoint_writer.h"

#include <algorithm>
#include <utility>

namespace twinbench {

CheckpointWriter::CheckpointWriter(Options options, std::vector<TensorBytes> layout)
    : options_(std::move(options)), sections_(std::move(layout)) {
  for (const NamedCheckpoint& one : list_checkpoints(options_.folder))
    next_sequence_ = std::max(next_sequence_, one.sequence + 1);
  const auto bytes_in = [](const TensorBytes& section) {
    std::size_t bytes = bytes_of(section.type);
    for (const std::int64_t extent : section.shape) bytes *= static_cast<std::size_t>(extent);
    return bytes;
  };
  std::size_t all = 0;
  for (const TensorBytes& section : sections_) all += bytes_in(section);
  staging_.resize(all);
  std::size_t at = 0;
  for (TensorBytes& section : sections_) {
    section.bytes = ByteSpan(staging_).subspan(at, bytes_in(section));
    at += section.bytes.size();
  }
  thread_ = std::thread([this] { work(); });
}

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

bool CheckpointWriter::save(const CheckpointName& name, CheckpointMetadata metadata,
                            const std::function<void(std::span<std::uint8_t>)>& copy) {
  Job job{checkpoint_name(name), std::move(metadata), 0};
  {
    std::unique_lock lock(mutex_);
    if (job_ && options_.when_busy == WhenBusy::kSkip) {
      ++tally_.skipped;
      return false;
    }
    if (job_) ++tally_.waited;
    changed_.wait(lock, [this] { return !job_; });
  }
  copy(staging_);  // nothing is in flight, and only this thread puts something there
  {
    const std::lock_guard lock(mutex_);
    job.sequence = next_sequence_++;
    job_ = std::move(job);
  }
  changed_.notify_all();
  return true;
}

void CheckpointWriter::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !job_; });
}

CheckpointWriter::Tally CheckpointWriter::tally() const {
  const std::lock_guard lock(mutex_);
  return tally_;
}

void CheckpointWriter::work() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return job_ || ends_; });
      if (!job_) return;
    }
    write(*job_);
    {
      const std::lock_guard lock(mutex_);
      job_.reset();
    }
    changed_.notify_all();
  }
}

void CheckpointWriter::write(const Job& job) {
  const auto failed = [this](const char* what) {
    const std::lock_guard lock(mutex_);
    ++tally_.failed;
    tally_.last_failure = what;
  };
  try {
    const std::uint64_t bytes = write_checkpoint(options_.folder + "/" + job.file, sections_, job.metadata,
                                                 job.sequence, options_.codec, compressor_);
    {
      const std::lock_guard lock(mutex_);
      ++tally_.written;
      tally_.bytes += bytes;
    }
    const std::int64_t deleted = clean_checkpoints(options_.folder, options_.retention, job.file);
    const std::lock_guard lock(mutex_);
    tally_.deleted += deleted;
  } catch (const std::exception& error) {
    failed(error.what());
  }
}

}  // namespace twinbench
