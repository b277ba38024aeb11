// The ring: workers take tickets in order, fill slot (ticket mod depth), and the consumer collects in order. The first
// ticket is the consumer's own.
#include "optimized/energy_flow/dataset_loader/streaming_loader.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::align_val_t kSlotAlignment{64};

LoaderOptions checked(LoaderOptions options) {
  const auto require = [](bool holds, const char* field, std::int64_t value, const char* remedy) {
    if (!holds) throw Error(ErrorKind::kOutOfRange, field, std::to_string(value), remedy);
  };
  require(options.batch >= 1 && options.batch <= (1 << 24), "batch", options.batch, "give 1 to 16777216 rows");
  require(options.workers >= 0 && options.workers <= 256, "workers", options.workers, "give 0 to 256 threads");
  require(options.prefetch_depth >= 1 && options.prefetch_depth <= 4096, "prefetch_depth", options.prefetch_depth,
          "give 1 to 4096 slots");
  require(options.epochs >= 0, "epochs", options.epochs, "give 0 or more");
  require(options.max_batches_per_epoch >= 0, "max_batches_per_epoch", options.max_batches_per_epoch,
          "give 0 (all) or more");
  require(options.start.epoch >= 0, "start epoch", options.start.epoch, "give 0 or more");
  require(options.start.batch >= 0, "start batch", options.start.batch, "give 0 or more");
  if (!options.allocate) {
    options.allocate = [](std::size_t elements) {
      auto* memory = static_cast<float*>(::operator new(elements * sizeof(float), kSlotAlignment));
      return std::shared_ptr<float>(memory, [](float* at) { ::operator delete(at, kSlotAlignment); });
    };
  }
  return options;
}

std::vector<std::uint32_t> list_valid(const RowValidity& validity) {
  std::vector<std::uint32_t> rows;
  if (validity.dropped.empty()) return rows;
  rows.reserve(static_cast<std::size_t>(validity.rows) - validity.dropped.size());
  for (std::int64_t row = 0; row < validity.rows; ++row) {
    if (validity.valid(row)) rows.push_back(static_cast<std::uint32_t>(row));
  }
  return rows;
}

}  // namespace

StreamingLoader::StreamingLoader(const std::string& path, const LoaderOptions& options)
    : options_(checked(options)),
      file_(path, options.expected_width),
      validity_(load_validity(file_)),
      valid_rows_(list_valid(validity_)) {
  plan_ = {validity_.rows - static_cast<std::int64_t>(validity_.dropped.size()), options_.batch,
           options_.max_batches_per_epoch};
  const std::int64_t per_epoch = plan_.batches();
  if (per_epoch == 0) return;
  // Tickets count from batch 0 of the start epoch.
  tickets_ = std::max(options_.epochs * per_epoch, options_.start.batch);
  taken_ = released_ = delivered_ = options_.start.batch;
  const std::int64_t wanted = std::min<std::int64_t>(options_.prefetch_depth, tickets_ - delivered_);
  slots_.resize(static_cast<std::size_t>(std::max<std::int64_t>(wanted, 1)));
  const auto elements = static_cast<std::size_t>(2 * std::min(plan_.batch, plan_.rows) * file().width());
  for (Slot& slot : slots_) slot.memory = options_.allocate(elements);
  // The consumer gathers the first batch itself: it would only wait for a thread to start. A single batch needs no
  // thread.
  ++taken_;
  const std::int64_t threads = tickets_ - delivered_ > 1 ? std::min<std::int64_t>(options_.workers, wanted) : 0;
  try {
    for (std::int64_t i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {
    stop();  // no destructor will: the workers there are must end before their members do
    throw;
  }
}

StreamingLoader::~StreamingLoader() { stop(); }

void StreamingLoader::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  slot_free_.notify_all();
}

LoaderPosition StreamingLoader::position_of(std::int64_t ticket) const {
  const std::int64_t per_epoch = std::max<std::int64_t>(plan_.batches(), 1);
  return {options_.start.epoch + ticket / per_epoch, ticket % per_epoch};
}

StreamingLoader::Permutation StreamingLoader::permutation(std::int64_t epoch) {
  if (!options_.shuffle) return nullptr;
  const std::lock_guard lock(order_mutex_);
  // Tickets are taken in order, so a late worker may still want the epoch before: it computes that for itself.
  if (epoch < order_epoch_) {
    return std::make_shared<const std::vector<std::uint32_t>>(epoch_permutation(plan_.rows, epoch, options_.seed));
  }
  if (epoch != order_epoch_) {
    order_ = std::make_shared<const std::vector<std::uint32_t>>(epoch_permutation(plan_.rows, epoch, options_.seed));
    order_epoch_ = epoch;
  }
  return order_;
}

void StreamingLoader::gather(const LoaderPosition& where, Slot& slot) {
  if (options_.before_gather) options_.before_gather(where.epoch, where.batch);
  const Permutation order = permutation(where.epoch);
  const std::int64_t count = plan_.rows_of(where.batch), width = file().width();
  LoadedBatch& batch = slot.batch;
  batch.epoch = where.epoch;
  batch.index = where.batch;
  batch.rows.resize(static_cast<std::size_t>(count));
  batch.texts.resize(static_cast<std::size_t>(2 * count));
  float *inputs = slot.memory.get(), *targets = inputs + count * width;
  batch.inputs = inputs;
  batch.targets = targets;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(where.batch * plan_.batch + i);
    const std::size_t place = order ? (*order)[at] : at;
    const auto row = static_cast<std::int64_t>(valid_rows_.empty() ? place : valid_rows_[place]);
    file().read_row(kEfdsInputs, row, inputs + i * width);
    file().read_row(kEfdsTargets, row, targets + i * width);
    batch.rows[static_cast<std::size_t>(i)] = row;
    batch.texts[static_cast<std::size_t>(2 * i)] = file().text(2 * row);
    batch.texts[static_cast<std::size_t>(2 * i + 1)] = file().text(2 * row + 1);
  }
}

void StreamingLoader::fill(std::int64_t ticket) {
  Slot& slot = slots_[static_cast<std::size_t>(ticket) % slots_.size()];
  std::exception_ptr error;
  try {
    gather(position_of(ticket), slot);
  } catch (...) {
    error = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    slot.error = error;
    slot.ready = ticket;
  }
  slot_ready_.notify_one();
}

void StreamingLoader::work() {
  for (;;) {
    std::int64_t ticket;
    {
      std::unique_lock lock(mutex_);
      const auto depth = static_cast<std::int64_t>(slots_.size());
      slot_free_.wait(lock, [&] { return stop_ || taken_ == tickets_ || taken_ < released_ + depth; });
      if (stop_ || taken_ == tickets_) return;
      ticket = taken_++;
    }
    fill(ticket);
  }
}

const LoadedBatch* StreamingLoader::next() {
  if (failure_) std::rethrow_exception(failure_);
  if (delivered_ == tickets_) return nullptr;
  Slot& slot = slots_[static_cast<std::size_t>(delivered_) % slots_.size()];
  {
    const std::lock_guard lock(mutex_);
    released_ = delivered_;  // the batch delivered before is done with
  }
  if (workers_.empty() || delivered_ == options_.start.batch) {
    ++waits_;
    fill(delivered_);
  } else {
    slot_free_.notify_all();
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return slot.ready == delivered_; };
    if (!ready()) {
      ++waits_;
      slot_ready_.wait(lock, ready);
    }
  }
  if (slot.error) {
    failure_ = slot.error;
    std::rethrow_exception(failure_);
  }
  ++delivered_;
  return &slot.batch;
}

}  // namespace twinbench
