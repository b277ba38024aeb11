// Runs a grid on the host: schedules the threads of a block as fibers, resolves barriers and warp operations.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <typeinfo>
#include <vector>

#include "harness/simt/fiber.h"
#include "harness/simt/report.h"
#include "harness/simt/shared_memory.h"

namespace twinbench::kernels::simt {

class AccessObserver;
class HostBlock;
class Team;

// In which order the threads that can run do run. Shuffled also lets whole warps fall behind, by chance.
enum class Order { kForward, kReverse, kShuffled };
inline constexpr std::array<Order, 3> kAllOrders = {Order::kForward, Order::kReverse, Order::kShuffled};
const char* to_string(Order order);

struct HostOptions {
  Order order = Order::kForward;
  std::uint64_t seed = 0;                      // of the shuffled order
  std::vector<std::int64_t> only_blocks = {};  // linear indices (x fastest); empty: all blocks of the grid
};

struct Place {
  const char* file;
  int line;
};

enum class WarpOperation {
  kBarrier,
  kShuffleDown,
  kShuffleXor,
  kShuffleIndex,
  kBallot,
  kMmaBf16,  // from here on: what all 32 lanes do together, see WarpCollective
  kMmaTf32,
  kLoadMatrices,
};

// What a lane brings to an operation of the whole warp; `apply` gets all of them, in lane order, when all are there.
struct WarpCollective {
  void* own;
  void (*apply)(void* const* lanes);
};

struct WarpRequest {
  WarpOperation operation;
  std::uint32_t mask;
  int argument;  // delta, lanes or lane
  int bytes;     // of the value
  alignas(8) unsigned char value[8];
};

// One CUDA thread of the block that runs now.
struct HostThread {
  enum class State { kReady, kAtBarrier, kAtTeamBarrier, kInWarpOperation, kFinished };

  Index3 position{};
  int rank = 0, lane = 0, warp = 0;
  State state = State::kReady;
  Place place{"", 0};  // where it waits
  WarpRequest request{};
  alignas(8) unsigned char result[8]{};
  std::array<std::uint32_t, kWarpSize> clock{};  // what it knows of its warp's progress: orders touches within the warp
  Executor* executor = nullptr;
  Fiber fiber;
};

class Executor {
 public:
  // The body is one thread of the kernel. Throws std::invalid_argument if the launch breaks a CUDA limit.
  Executor(std::string kernel, Index3 grid, Index3 block, std::size_t dynamic_shared_bytes, int max_threads,
           HostOptions options, std::function<void(HostBlock&)> body);

  Report run();

  // For a team, whose blocks run at once, each by an executor of its own; findings go into the first one's report.
  void join(Team& team, int place, Executor& first);
  void start_block(std::int64_t linear_index, std::uint32_t epoch);
  bool run_pass();  // lets every thread run that can; false: none could
  bool has_finished() const;
  bool all_at_team_barrier() const;
  bool some_at_team_barrier() const;
  void check_same_place(Place expected);
  Place first_place() const { return threads_.front()->place; }
  void leave_team_barrier(std::uint32_t epoch);
  void explain_deadlock();
  void abandon_block();
  void check_shared_size();
  Report& report() { return report_; }
  Team* team() const { return team_; }
  std::uint8_t place_in_team() const { return static_cast<std::uint8_t>(place_in_team_); }
  std::uint32_t epoch_of_team() const { return epoch_of_team_; }
  void wait_at_team_barrier(HostThread& thread, Place place);
  // The array of this block that a fellow's kernel names; nullptr where this block has none like it yet.
  SharedRegion* find_region(const SharedRegion& like, const Executor& of);

  // For HostBlock.
  Index3 block_index() const { return block_index_; }
  Index3 block_size() const { return block_; }
  unsigned grid_extent(int axis);  // 0: x
  void wait_at_barrier(HostThread& thread, Place place);
  void wait_for_warp(HostThread& thread, const WarpRequest& request, Place place);
  SharedRegion& static_region(const std::type_info& type, int count, int slot, int element_bytes);
  SharedRegion& dynamic_region() { return *dynamic_region_; }
  // A global atomic update in two steps, between which no other thread runs.
  void fence(HostThread& thread);
  void begin_global_update(const void* where, void* old, int size);
  void finish_global_update(void* where, const void* changed, int size);

  // The thread that runs now, of this OS thread's innermost launch; null between.
  static const HostThread* running();

  // For AsyncCopies.
  void count_asynchronous_copy() { ++report_.asynchronous_copies; }

  // For those who watch.
  const std::string& kernel() const { return kernel_; }
  Index3 grid_size() const { return grid_; }
  std::int64_t dynamic_shared_bytes() const { return static_cast<std::int64_t>(dynamic_region_->bytes.size()); }
  AccessObserver* observer() const { return observer_; }

  // For the shared-memory checks.
  std::uint32_t epoch() const { return epoch_; }
  std::uint32_t first_epoch_of_block() const { return first_epoch_of_block_; }

  // Keeps the first finding of each kind and subject (array, call site).
  void add_finding(FindingKind kind, int thread, int other_thread, std::int64_t offset, const std::string& subject,
                   std::string text);

 private:
  struct Abandoned {};  // thrown inside a fiber to unwind it after a deadlock

  static void run_thread(void* thread);
  void run_block(std::int64_t linear_index);
  bool run_ready_threads();
  void run_thread_until_it_waits(HostThread& thread);
  bool complete_warp_operations(int warp);
  void exchange(int warp, std::uint32_t mask);
  void run_collective(int warp, std::uint32_t mask);
  bool release_barrier();
  void explain_warp_deadlock(const HostThread& waiting);
  void suspend(HostThread& thread, HostThread::State state, Place place);

  std::string kernel_;
  Index3 grid_, block_, block_index_{};
  HostOptions options_;
  std::function<void(HostBlock&)> body_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<HostThread>> threads_;
  std::vector<int> order_;
  std::vector<bool> delayed_;  // warps that the shuffled order holds back in this pass
  struct StaticRegion {
    const std::type_info* type;
    int count, slot;
    std::unique_ptr<SharedRegion> region;
  };
  std::vector<StaticRegion> static_regions_;
  std::unique_ptr<SharedRegion> dynamic_region_;
  std::uint32_t epoch_ = 0, first_epoch_of_block_ = 0, epoch_of_team_ = 0;
  Team* team_ = nullptr;
  int place_in_team_ = 0;
  Executor* first_ = this;  // of the team
  bool abandoning_ = false;
  std::vector<std::string> reported_;
  Report report_;
  AccessObserver* observer_ = nullptr;
  std::array<bool, 3> extent_asked_{};
  std::vector<int> ready_in_warp_;  // threads that this pass has still to run, where somebody watches
};

}  // namespace twinbench::kernels::simt
