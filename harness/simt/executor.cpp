// The scheduler of the host run: passes over the threads that can run, then warp operations, then the barrier.
#include "harness/simt/executor.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <utility>

#include "harness/simt/access_observer.h"
#include "harness/simt/grid_watch.h"
#include "harness/simt/guarded_buffer.h"
#include "harness/simt/host_block.h"

namespace twinbench::kernels::simt {
namespace {

thread_local const HostThread* g_running = nullptr;

std::uint64_t volume(Index3 size) { return std::uint64_t{size.x} * size.y * size.z; }

void check_launch(const std::string& kernel, Index3 grid, Index3 block, int max_threads) {
  const std::uint64_t threads = volume(block);
  if (threads == 0 || threads > static_cast<std::uint64_t>(std::min(max_threads, 1024)) || block.z > 64) {
    throw std::invalid_argument(kernel + ": a block of " + std::to_string(threads) + " threads; its launch bound is " +
                                std::to_string(max_threads));
  }
  if (grid.x > 0x7fffffffu || grid.y > 0xffffu || grid.z > 0xffffu) {
    throw std::invalid_argument(kernel + ": grid larger than (2^31 - 1, 65535, 65535)");
  }
}

}  // namespace

const char* to_string(Order order) {
  switch (order) {
    case Order::kForward: return "forward";
    case Order::kReverse: return "reverse";
    case Order::kShuffled: return "shuffled";
  }
  return "unknown";
}

Executor::Executor(std::string kernel, Index3 grid, Index3 block, std::size_t dynamic_shared_bytes, int max_threads,
                   HostOptions options, std::function<void(HostBlock&)> body)
    : kernel_(std::move(kernel)),
      grid_(grid),
      block_(block),
      options_(std::move(options)),
      body_(std::move(body)),
      random_(options_.seed),
      dynamic_region_(std::make_unique<SharedRegion>("dynamic shared memory", dynamic_shared_bytes)),
      observer_(launch_observer()) {
  check_launch(kernel_, grid, block, max_threads);
  const int count = static_cast<int>(volume(block));
  for (int rank = 0; rank < count; ++rank) {
    auto thread = std::make_unique<HostThread>();
    thread->rank = rank;
    thread->lane = rank % kWarpSize;
    thread->warp = rank / kWarpSize;
    const auto r = static_cast<unsigned>(rank);
    thread->position = {r % block.x, r / block.x % block.y, r / block.x / block.y};
    thread->executor = this;
    threads_.push_back(std::move(thread));
    order_.push_back(rank);
  }
  if (options_.order == Order::kReverse) std::reverse(order_.begin(), order_.end());
  delayed_.assign(static_cast<std::size_t>((count + kWarpSize - 1) / kWarpSize), false);
}

Report Executor::run() {
  std::vector<std::int64_t> blocks = options_.only_blocks;
  if (blocks.empty()) {
    blocks.resize(volume(grid_));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::int64_t>(i);
  }
  if (options_.order == Order::kReverse) std::reverse(blocks.begin(), blocks.end());
  if (options_.order == Order::kShuffled) std::shuffle(blocks.begin(), blocks.end(), random_);

  if (observer_ != nullptr) observer_->begin_launch(*this);
  GuardWatch watch;
  for (const std::int64_t block : blocks) {
    if (block < 0 || static_cast<std::uint64_t>(block) >= volume(grid_)) {
      throw std::invalid_argument(kernel_ + ": no block " + std::to_string(block) + " in the grid");
    }
    if (observer_ != nullptr && !observer_->takes_block(block)) continue;
    watch.set_thread(-1);
    run_block(block);
    for (const GuardFault& fault : watch.take_faults()) {
      const std::string who = fault.thread < 0 ? "a thread" : "thread " + std::to_string(fault.thread);
      add_finding(FindingKind::kOutOfBounds, fault.thread, -1, fault.offset, fault.memory->name(),
                  who + (fault.write ? " writes" : " reads") + " outside " + fault.memory->name() + ": byte offset " +
                      std::to_string(fault.offset) + ", size " + std::to_string(fault.memory->bytes()) +
                      (fault.thread < 0 ? " or just before it (pattern damaged)" : ""));
    }
    if (abandoning_) break;
  }
  check_shared_size();
  if (observer_ != nullptr) observer_->end_launch(report_);
  return std::move(report_);
}

unsigned Executor::grid_extent(int axis) {
  bool& asked = extent_asked_[static_cast<std::size_t>(axis)];
  if (!asked) announce_extent_asked(kernel_, axis);
  asked = true;
  return axis == 0 ? grid_.x : axis == 1 ? grid_.y : grid_.z;
}

void Executor::run_thread(void* context) {
  HostThread& thread = *static_cast<HostThread*>(context);
  Executor& executor = *thread.executor;
  try {
    HostBlock block(executor, thread);
    executor.body_(block);
  } catch (const Abandoned&) {
  } catch (const std::exception& error) {
    executor.add_finding(FindingKind::kException, thread.rank, -1, -1, "",
                         "thread " + std::to_string(thread.rank) + " threw: " + error.what());
  } catch (...) {
    executor.add_finding(FindingKind::kException, thread.rank, -1, -1, "",
                         "thread " + std::to_string(thread.rank) + " threw");
  }
  thread.state = HostThread::State::kFinished;
}

void Executor::start_block(std::int64_t linear_index, std::uint32_t epoch) {
  const auto i = static_cast<std::uint64_t>(linear_index);
  block_index_ = {static_cast<unsigned>(i % grid_.x), static_cast<unsigned>(i / grid_.x % grid_.y),
                  static_cast<unsigned>(i / grid_.x / grid_.y)};
  first_epoch_of_block_ = epoch_of_team_ = epoch_ = epoch;
  std::fill(dynamic_region_->bytes.begin(), dynamic_region_->bytes.end(), static_cast<unsigned char>(0xff));
  for (StaticRegion& entry : static_regions_) {
    std::fill(entry.region->bytes.begin(), entry.region->bytes.end(), static_cast<unsigned char>(0xff));
  }
  for (auto& thread : threads_) {
    thread->state = HostThread::State::kReady;
    thread->clock.fill(0);
    thread->clock[static_cast<std::size_t>(thread->lane)] = 1;
    thread->fiber.prepare(&Executor::run_thread, thread.get());
  }
  ++report_.blocks;
  report_.threads += threads_.size();
}

bool Executor::run_pass() {
  bool progress = run_ready_threads();
  for (int warp = 0; warp < static_cast<int>(delayed_.size()); ++warp) progress |= complete_warp_operations(warp);
  return release_barrier() || progress;
}

bool Executor::has_finished() const {
  return std::all_of(threads_.begin(), threads_.end(),
                     [](const auto& thread) { return thread->state == HostThread::State::kFinished; });
}

void Executor::run_block(std::int64_t linear_index) {
  start_block(linear_index, epoch_ + 1);
  if (observer_ != nullptr) observer_->begin_block(linear_index);

  for (;;) {
    const bool progress = run_pass();
    if (has_finished()) {
      if (observer_ != nullptr) observer_->end_block();
      return;
    }
    if (!progress) {
      explain_deadlock();
      abandon_block();
      return;
    }
  }
}

bool Executor::run_ready_threads() {
  if (options_.order == Order::kShuffled) {
    std::shuffle(order_.begin(), order_.end(), random_);
    for (std::size_t warp = 0; warp < delayed_.size(); ++warp) delayed_[warp] = random_() % 2 == 0;
  }
  if (observer_ != nullptr) {
    ready_in_warp_.assign(delayed_.size(), 0);
    for (const auto& thread : threads_)
      ready_in_warp_[static_cast<std::size_t>(thread->warp)] += thread->state == HostThread::State::kReady;
  }
  bool progress = false, skipped = false;
  for (const int rank : order_) {
    HostThread& thread = *threads_[static_cast<std::size_t>(rank)];
    if (thread.state != HostThread::State::kReady) continue;
    if (delayed_[static_cast<std::size_t>(thread.warp)]) {
      skipped = true;
      continue;
    }
    GuardWatch::set_thread(rank);
    run_thread_until_it_waits(thread);
    ++report_.switches;
    progress = true;
  }
  return progress || skipped;
}

const HostThread* Executor::running() { return g_running; }

void Executor::run_thread_until_it_waits(HostThread& thread) {
  const HostThread* const outer = std::exchange(g_running, &thread);
  if (observer_ != nullptr) observer_->begin_thread(thread);
  thread.fiber.resume();
  g_running = outer;
  if (observer_ == nullptr) return;
  observer_->pause_thread();
  if (--ready_in_warp_[static_cast<std::size_t>(thread.warp)] == 0) observer_->meet_warp(thread.warp);
}

void Executor::begin_global_update(const void* where, void* old, int size) {
  if (observer_ != nullptr)
    observer_->touch_global(__builtin_return_address(0), where, static_cast<std::uint32_t>(size), Access::kAtomic);
  std::memcpy(old, where, static_cast<std::size_t>(size));
}

void Executor::finish_global_update(void* where, const void* changed, int size) {
  std::memcpy(where, changed, static_cast<std::size_t>(size));
}

void Executor::suspend(HostThread& thread, HostThread::State state, Place place) {
  if (abandoning_) throw Abandoned{};
  thread.state = state;
  thread.place = place;
  thread.fiber.suspend();
  if (abandoning_) throw Abandoned{};
}

void Executor::wait_at_barrier(HostThread& thread, Place place) {
  suspend(thread, HostThread::State::kAtBarrier, place);
}

void Executor::fence(HostThread&) {
  if (observer_ != nullptr) observer_->fence();
}

bool Executor::release_barrier() {
  for (const auto& thread : threads_) {
    if (thread->state != HostThread::State::kAtBarrier) return false;
  }
  const HostThread& first = *threads_.front();
  for (auto& thread : threads_) {
    if (thread->place.line != first.place.line || std::strcmp(thread->place.file, first.place.file) != 0) {
      add_finding(FindingKind::kDivergentBarrier, thread->rank, first.rank, -1, std::to_string(thread->place.line),
                  "thread " + std::to_string(thread->rank) + " waits at " + thread->place.file + ":" +
                      std::to_string(thread->place.line) + ", thread 0 at " + first.place.file + ":" +
                      std::to_string(first.place.line));
    }
    thread->state = HostThread::State::kReady;
  }
  ++epoch_;
  ++report_.barriers;
  if (observer_ != nullptr) observer_->pass_barrier();
  return true;
}

void Executor::abandon_block() {
  abandoning_ = true;
  for (auto& thread : threads_) {
    if (thread->state == HostThread::State::kFinished || !thread->fiber.started()) continue;
    thread->fiber.resume();  // comes back from suspend() there, throws, unwinds, finishes
  }
}

SharedRegion& Executor::static_region(const std::type_info& type, int count, int slot, int element_bytes) {
  for (StaticRegion& entry : static_regions_) {
    if (*entry.type == type && entry.count == count && entry.slot == slot) return *entry.region;
  }
  std::string name = slot < 0 ? "the reduction's shared array" : "shared array " + std::to_string(slot);
  name += " (" + std::to_string(count) + " elements of " + std::to_string(element_bytes) + " bytes)";
  const std::size_t bytes = static_cast<std::size_t>(count) * static_cast<std::size_t>(element_bytes);
  static_regions_.push_back(
      {&type, count, slot, std::make_unique<SharedRegion>(std::move(name), bytes, element_bytes == 1 ? 1 : 2)});
  return *static_regions_.back().region;
}

void Executor::check_shared_size() {
  std::size_t bytes = 0;
  for (const StaticRegion& entry : static_regions_) bytes += entry.region->bytes.size();
  report_.static_shared_bytes = static_cast<int>(bytes);
  bytes += dynamic_region_->bytes.size();
  if (bytes > static_cast<std::size_t>(kMaxSharedBytes)) {
    add_finding(FindingKind::kSharedTooLarge, -1, -1, static_cast<std::int64_t>(bytes), "",
                std::to_string(bytes) + " bytes of shared memory; " + std::to_string(kMaxSharedBytes) +
                    " is all that sm_120 has");
  }
}

void Executor::add_finding(FindingKind kind, int thread, int other_thread, std::int64_t offset,
                           const std::string& subject, std::string text) {
  if (first_ != this) {
    first_->block_index_ = block_index_;
    return first_->add_finding(kind, thread, other_thread, offset, subject, std::move(text));
  }
  std::string key = std::to_string(static_cast<int>(kind)) + subject;
  if (std::find(reported_.begin(), reported_.end(), key) != reported_.end()) return;
  reported_.push_back(std::move(key));
  report_.findings.push_back({kind, kernel_, block_index_, thread, other_thread, offset, std::move(text)});
}

}  // namespace twinbench::kernels::simt
