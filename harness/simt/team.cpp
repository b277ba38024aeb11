// Turns of the blocks that run at once, their barrier, and what is wrong where it never opens.
#include "harness/simt/team.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

#include "harness/simt/access_observer.h"
#include "harness/simt/guarded_buffer.h"

namespace twinbench::kernels::simt {

Team::Team(Kind kind, std::int64_t blocks, const std::function<std::unique_ptr<Executor>()>& make) : kind_(kind) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    members_.push_back(make());
    members_.back()->join(*this, static_cast<int>(i), *members_.front());
  }
}

Report Team::run(std::int64_t grid_blocks, const HostOptions& options) {
  Executor& first = *members_.front();
  AccessObserver* observer = first.observer();
  std::vector<std::int64_t> teams(static_cast<std::size_t>(grid_blocks / size()));
  for (std::size_t i = 0; i < teams.size(); ++i) teams[i] = static_cast<std::int64_t>(i) * size();
  std::vector<int> order(members_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::mt19937_64 random(options.seed);
  if (options.order == Order::kReverse) {
    std::reverse(teams.begin(), teams.end());
    std::reverse(order.begin(), order.end());
  }
  if (options.order == Order::kShuffled) std::shuffle(teams.begin(), teams.end(), random);

  if (observer != nullptr) observer->begin_launch(first);
  GuardWatch watch;
  for (const std::int64_t team : teams) {
    // Sampling takes whole teams, by their first blocks.
    if (observer != nullptr && kind_ == Kind::kCluster && !observer->takes_block(team)) continue;
    if (options.order == Order::kShuffled) std::shuffle(order.begin(), order.end(), random);
    watch.set_thread(-1);
    run_team(team, order);
    for (const GuardFault& fault : watch.take_faults())
      first.add_finding(FindingKind::kOutOfBounds, fault.thread, -1, fault.offset, fault.memory->name(),
                        std::string("a thread ") + (fault.write ? "writes" : "reads") + " outside " +
                            fault.memory->name() + ": byte offset " + std::to_string(fault.offset) + ", size " +
                            std::to_string(fault.memory->bytes()));
    if (stopped_) break;
  }
  Report& report = first.report();
  for (std::size_t i = 1; i < members_.size(); ++i) {
    const Report& other = members_[i]->report();
    report.blocks += other.blocks;
    report.threads += other.threads;
    report.barriers += other.barriers;
    report.warp_operations += other.warp_operations;
    report.switches += other.switches;
  }
  first.check_shared_size();
  if (observer != nullptr) observer->end_launch(report);
  return std::move(report);
}

void Team::run_team(std::int64_t first_block, const std::vector<int>& order) {
  AccessObserver* observer = members_.front()->observer();
  ++epoch_;
  last_other_ = {};
  for (int place = 0; place < size(); ++place) member(place).start_block(first_block + place, epoch_);
  for (;;) {
    bool progress = false;
    for (const int place : order) {
      if (member(place).has_finished()) continue;
      if (observer != nullptr) observer->begin_block(first_block + place);
      progress |= member(place).run_pass();
    }
    progress |= release_barrier(first_block);
    if (std::all_of(members_.begin(), members_.end(), [](const auto& one) { return one->has_finished(); })) break;
    if (progress) continue;
    explain_deadlock();
    for (auto& one : members_) one->abandon_block();
    stopped_ = true;
    break;
  }
  if (last_other_.of >= 0 && !stopped_)
    member(last_other_.by)
        .add_finding(FindingKind::kTeam, last_other_.thread, -1, -1, "end",
                     "thread " + std::to_string(last_other_.thread) + " of block " + std::to_string(last_other_.by) +
                         " of the cluster touches shared memory of block " + std::to_string(last_other_.of) +
                         ", which may have ended by then: a cluster barrier must follow before any block ends");
  if (observer != nullptr) observer->end_block();
}

bool Team::release_barrier(std::int64_t first_block) {
  if (!std::all_of(members_.begin(), members_.end(), [](const auto& one) { return one->all_at_team_barrier(); }))
    return false;
  const Place place = members_.front()->first_place();
  for (auto& one : members_) {
    one->check_same_place(place);
    epoch_ = std::max(epoch_, one->epoch());
  }
  ++epoch_;
  for (auto& one : members_) one->leave_team_barrier(epoch_);
  last_other_ = {};
  if (AccessObserver* observer = members_.front()->observer()) observer->pass_team_barrier(first_block, size());
  return true;
}

void Team::explain_deadlock() {
  int waiting = -1, missing = -1;
  for (int place = 0; place < size(); ++place) {
    if (member(place).some_at_team_barrier() && waiting < 0) waiting = place;
    if (!member(place).all_at_team_barrier() && missing < 0) missing = place;
  }
  if (waiting < 0 || missing < 0) {
    for (auto& one : members_)
      if (!one->has_finished()) return one->explain_deadlock();
    return;
  }
  member(missing).add_finding(
      FindingKind::kTeam, -1, -1, -1, "deadlock",
      "block " + std::to_string(waiting) + " waits at a " + barrier_name() + " that " +
          (waiting == missing ? "some of its own threads" : "block " + std::to_string(missing)) + " never reaches" +
          (member(missing).has_finished() ? ": it has ended" : ""));
}

void Team::touch_other(const Executor& by, const HostThread& thread, int of) {
  last_other_ = {static_cast<int>(by.place_in_team()), of, thread.rank};
}

Report run_team_on_host(const std::string& kernel, Index3 grid, Index3 block, std::size_t dynamic_shared_bytes,
                        int max_threads, const HostOptions& options, int cluster, bool cooperative,
                        std::function<void(HostBlock&)> body) {
  const std::int64_t blocks = std::int64_t{grid.x} * grid.y * grid.z;
  if (blocks == 0) return {};
  if (cooperative && cluster != 1) throw std::invalid_argument(kernel + ": a cooperative launch of clusters; not both");
  if (cluster < 1 || grid.x % static_cast<unsigned>(cluster) != 0)
    throw std::invalid_argument(kernel + ": clusters of " + std::to_string(cluster) + " blocks in a grid of " +
                                std::to_string(grid.x) + " along x; whole ones only");
  Team team(cooperative ? Team::Kind::kGrid : Team::Kind::kCluster, cooperative ? blocks : cluster, [&] {
    return std::make_unique<Executor>(kernel, grid, block, dynamic_shared_bytes, max_threads, options, body);
  });
  return team.run(blocks, options);
}

// The members' side.

void Executor::join(Team& team, int place, Executor& first) {
  team_ = &team;
  place_in_team_ = place;
  first_ = &first;
  random_.seed(options_.seed + static_cast<std::uint64_t>(place));
}

bool Executor::all_at_team_barrier() const {
  return std::all_of(threads_.begin(), threads_.end(),
                     [](const auto& thread) { return thread->state == HostThread::State::kAtTeamBarrier; });
}

bool Executor::some_at_team_barrier() const {
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const auto& thread) { return thread->state == HostThread::State::kAtTeamBarrier; });
}

void Executor::check_same_place(Place expected) {
  for (const auto& thread : threads_)
    if (thread->place.line != expected.line || std::string(thread->place.file) != expected.file)
      add_finding(FindingKind::kTeam, thread->rank, -1, -1, std::to_string(thread->place.line),
                  "thread " + std::to_string(thread->rank) + " waits for the other blocks at " + thread->place.file +
                      ":" + std::to_string(thread->place.line) + ", others at " + expected.file + ":" +
                      std::to_string(expected.line));
}

void Executor::leave_team_barrier(std::uint32_t epoch) {
  for (auto& thread : threads_) thread->state = HostThread::State::kReady;
  epoch_ = epoch_of_team_ = epoch;
  ++report_.barriers;
}

void Executor::wait_at_team_barrier(HostThread& thread, Place place) {
  suspend(thread, HostThread::State::kAtTeamBarrier, place);
}

SharedRegion* Executor::find_region(const SharedRegion& like, const Executor& of) {
  if (of.dynamic_region_.get() == &like) return dynamic_region_.get();
  for (const StaticRegion& named : of.static_regions_)
    if (named.region.get() == &like)
      return &static_region(*named.type, named.count, named.slot,
                            static_cast<int>(like.bytes.size()) / std::max(1, named.count));
  return nullptr;
}

}  // namespace twinbench::kernels::simt
