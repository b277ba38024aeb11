// Batches of a mapped EFDS file in a deterministic order, gathered ahead of their use by worker threads into a ring of
// slots (energy-flow specification C02). Torch-free.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/formats/batch_order.h"
#include "src/formats/efds.h"
#include "src/formats/efds_prepare.h"

namespace twinbench {

// Where an interrupted run goes on: the next batch to deliver.
struct LoaderPosition {
  std::int64_t epoch = 0, batch = 0;
};

struct LoaderOptions {
  std::int64_t batch = 16;
  int workers = 2;         // threads; 0: the consumer gathers for itself
  int prefetch_depth = 4;  // slots of the ring, the delivered one included
  bool shuffle = true;
  std::uint64_t seed = 1234;
  std::int64_t epochs = 1;                 // epochs to deliver, from the start on
  std::int64_t max_batches_per_epoch = 0;  // 0: all
  LoaderPosition start;                    // a batch beyond the epoch means the next epoch
  std::optional<std::int64_t> expected_width;
  // Memory of one slot, [2, batch, width] fp32, 64-byte aligned; page-locked where batches go to a GPU. Default: new.
  std::function<std::shared_ptr<float>(std::size_t elements)> allocate;
  // Called by the thread that is about to gather batch `index` of `epoch`: for faults on purpose. Default: none.
  std::function<void(std::int64_t epoch, std::int64_t index)> before_gather;
};

// A delivered batch: views into a slot and into the mapped file.
class LoadedBatch {
 public:
  std::int64_t epoch = 0, index = 0;
  std::vector<std::int64_t> rows;       // row numbers of the file, also after drops
  const float* inputs = nullptr;        // [rows, width]
  const float* targets = nullptr;       // [rows, width]
  std::vector<std::string_view> texts;  // input and target of each row in turn; valid while the loader lives

  std::int64_t size() const { return static_cast<std::int64_t>(rows.size()); }
};

class StreamingLoader {
 public:
  // Opens the file, reads its row validity (running the prepare pass if that is missing) and starts the workers. Throws
  // what EfdsFile and load_validity throw, and kOutOfRange for options that make no sense.
  StreamingLoader(const std::string& path, const LoaderOptions& options);
  ~StreamingLoader();  // joins the workers, whatever the ring holds

  // The next batch in order, valid until the next call; null after the last. Returns the slot of the one before. An
  // error of a worker is thrown here when its batch is due, and again by every later call.
  const LoadedBatch* next();

  LoaderPosition position() const { return position_of(delivered_); }
  const BatchPlan& plan() const { return plan_; }
  const EfdsView& file() const { return file_.view(); }
  const RowValidity& validity() const { return validity_; }
  std::int64_t waits() const { return waits_; }  // calls of next() that found their batch not ready

 private:
  struct Slot {
    std::shared_ptr<float> memory;
    LoadedBatch batch;
    std::int64_t ready = -1;  // ticket of the batch it holds
    std::exception_ptr error;
  };
  using Permutation = std::shared_ptr<const std::vector<std::uint32_t>>;

  LoaderPosition position_of(std::int64_t ticket) const;
  Permutation permutation(std::int64_t epoch);
  void work();
  void stop();
  void fill(std::int64_t ticket);
  void gather(const LoaderPosition& where, Slot& slot);

  const LoaderOptions options_;
  const EfdsFile file_;
  const RowValidity validity_;
  std::vector<std::uint32_t> valid_rows_;  // empty where every row is valid
  BatchPlan plan_;
  std::int64_t tickets_ = 0;  // batches to deliver in all

  std::mutex order_mutex_;  // guards the permutation of the epoch in work
  std::int64_t order_epoch_ = -1;
  Permutation order_;

  std::mutex mutex_;  // guards the slots' ready and error, and the counts below
  std::condition_variable slot_free_, slot_ready_;
  std::vector<Slot> slots_;
  std::int64_t taken_ = 0, released_ = 0;
  bool stop_ = false;

  std::int64_t delivered_ = 0, waits_ = 0;  // the consumer's own
  std::exception_ptr failure_;
  std::vector<std::jthread> workers_;  // last: they end before what they use
};

}  // namespace twinbench
