// Shuffles, ballots and warp barriers of the host run, and the explanation of threads that wait for ever.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {
namespace {

const char* to_string(WarpOperation operation) {
  switch (operation) {
    case WarpOperation::kBarrier: return "warp_barrier";
    case WarpOperation::kShuffleDown: return "shuffle_down";
    case WarpOperation::kShuffleXor: return "shuffle_xor";
    case WarpOperation::kShuffleIndex: return "shuffle_index";
    case WarpOperation::kBallot: return "ballot";
    case WarpOperation::kMmaBf16: return "multiply_bf16";
    case WarpOperation::kMmaTf32: return "multiply_tf32";
    case WarpOperation::kLoadMatrices: return "load_matrices";
  }
  return "unknown";
}

std::string hexadecimal(std::uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

std::string describe(const HostThread& thread) {
  const std::string place = std::string(thread.place.file) + ":" + std::to_string(thread.place.line);
  switch (thread.state) {
    case HostThread::State::kFinished: return "has finished";
    case HostThread::State::kAtTeamBarrier: return "waits for the other blocks at " + place;
    case HostThread::State::kAtBarrier: return "waits at the barrier " + place;
    case HostThread::State::kInWarpOperation:
      return std::string("waits in ") + to_string(thread.request.operation) + " with mask " +
             hexadecimal(thread.request.mask) + " at " + place;
    case HostThread::State::kReady: return "has not run";
  }
  return "";
}

// The lane a shuffle reads for `lane`; its own lane where CUDA leaves the value unchanged.
int source_lane(const WarpRequest& request, int lane) {
  switch (request.operation) {
    case WarpOperation::kShuffleDown: return lane + request.argument < kWarpSize ? lane + request.argument : lane;
    case WarpOperation::kShuffleXor: return lane ^ (request.argument & (kWarpSize - 1));
    case WarpOperation::kShuffleIndex: return request.argument & (kWarpSize - 1);
    default: return lane;
  }
}

}  // namespace

void Executor::wait_for_warp(HostThread& thread, const WarpRequest& request, Place place) {
  const int first = thread.warp * kWarpSize;
  const int lanes = std::min(kWarpSize, static_cast<int>(threads_.size()) - first);
  const std::uint32_t existing = lanes == kWarpSize ? kFullMask : (1u << lanes) - 1u;
  const std::uint32_t own = 1u << thread.lane;
  thread.request = request;
  const auto where = [&] {  // only told of a mistake: every lane passes here at every operation
    return std::string(to_string(request.operation)) + " at " + place.file + ":" + std::to_string(place.line);
  };
  if ((request.mask & own) == 0) {
    add_finding(FindingKind::kWarpMask, thread.rank, -1, -1, where(),
                "thread " + std::to_string(thread.rank) + " calls " + where() + " with mask " +
                    hexadecimal(request.mask) + ", which does not name its own lane " + std::to_string(thread.lane));
    thread.request.mask |= own;
  } else if ((request.mask & ~existing) != 0) {
    add_finding(FindingKind::kWarpMask, thread.rank, -1, -1, where(),
                "thread " + std::to_string(thread.rank) + " calls " + where() + " with mask " +
                    hexadecimal(request.mask) + ", but its warp has only " + std::to_string(lanes) + " threads");
    thread.request.mask &= existing;
  }
  suspend(thread, HostThread::State::kInWarpOperation, place);
}

bool Executor::complete_warp_operations(int warp) {
  bool progress = false;
  const int first = warp * kWarpSize;
  const int last = std::min(first + kWarpSize, static_cast<int>(threads_.size()));
  for (int rank = first; rank < last; ++rank) {
    const HostThread& thread = *threads_[static_cast<std::size_t>(rank)];
    if (thread.state != HostThread::State::kInWarpOperation) continue;
    bool complete = true;
    for (int lane = 0; lane < last - first; ++lane) {
      if ((thread.request.mask >> lane & 1u) == 0) continue;
      const HostThread& other = *threads_[static_cast<std::size_t>(first + lane)];
      complete &= other.state == HostThread::State::kInWarpOperation && other.request.mask == thread.request.mask &&
                  other.request.operation == thread.request.operation && other.request.bytes == thread.request.bytes;
    }
    if (!complete) continue;
    exchange(warp, thread.request.mask);
    progress = true;
  }
  return progress;
}

void Executor::exchange(int warp, std::uint32_t mask) {
  const auto at = [&](int lane) -> HostThread& { return *threads_[static_cast<std::size_t>(warp * kWarpSize + lane)]; };
  ++report_.warp_operations;
  const WarpOperation operation = at(std::countr_zero(mask)).request.operation;
  report_.bf16_products += operation == WarpOperation::kMmaBf16;
  report_.tf32_products += operation == WarpOperation::kMmaTf32;
  report_.matrix_loads += operation == WarpOperation::kLoadMatrices;
  if (operation >= WarpOperation::kMmaBf16) return run_collective(warp, mask);
  std::uint32_t votes = 0;
  std::array<std::uint32_t, kWarpSize> joined{};
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1u) == 0) continue;
    if (operation == WarpOperation::kBallot) {
      std::uint32_t predicate = 0;
      std::memcpy(&predicate, at(lane).request.value, sizeof predicate);
      if (predicate != 0) votes |= 1u << lane;
    } else if (operation == WarpOperation::kBarrier) {
      for (std::size_t i = 0; i < kWarpSize; ++i) joined[i] = std::max(joined[i], at(lane).clock[i]);
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1u) == 0) continue;
    HostThread& thread = at(lane);
    thread.state = HostThread::State::kReady;
    if (thread.request.operation == WarpOperation::kBallot) {
      std::memcpy(thread.result, &votes, sizeof votes);
    } else if (thread.request.operation == WarpOperation::kBarrier) {
      thread.clock = joined;  // everything these lanes did so far happened before everything they do from now on
      ++thread.clock[static_cast<std::size_t>(lane)];
      std::memset(thread.result, 0, sizeof thread.result);
    } else {
      const int source = source_lane(thread.request, lane);
      if ((mask >> source & 1u) == 0) {
        add_finding(FindingKind::kShuffleSource, thread.rank, warp * kWarpSize + source, -1,
                    std::to_string(thread.place.line),
                    "thread " + std::to_string(thread.rank) + " reads lane " + std::to_string(source) + " in " +
                        to_string(thread.request.operation) + " with mask " + hexadecimal(mask) + " at " +
                        thread.place.file + ":" + std::to_string(thread.place.line));
        std::memset(thread.result, 0xff, sizeof thread.result);
      } else {
        std::memcpy(thread.result, at(source).request.value, sizeof thread.result);
      }
    }
  }
}

// A warp of fewer threads was reported when they asked: they go on without a result.
void Executor::run_collective(int warp, std::uint32_t mask) {
  std::array<void*, kWarpSize> lanes;
  const WarpCollective* collective = nullptr;
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1u) == 0) continue;
    HostThread& thread = *threads_[static_cast<std::size_t>(warp * kWarpSize) + lane];
    std::memcpy(&collective, thread.request.value, sizeof collective);
    lanes[lane] = collective->own;
    thread.state = HostThread::State::kReady;
  }
  if (mask == kFullMask) collective->apply(lanes.data());
}

void Executor::explain_warp_deadlock(const HostThread& waiting) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const std::size_t rank = static_cast<std::size_t>(waiting.warp * kWarpSize + lane);
    if ((waiting.request.mask >> lane & 1u) == 0 || rank >= threads_.size()) continue;
    const HostThread& other = *threads_[rank];
    if (other.state == HostThread::State::kInWarpOperation && other.request.mask == waiting.request.mask &&
        other.request.operation == waiting.request.operation && other.request.bytes == waiting.request.bytes) {
      continue;
    }
    add_finding(FindingKind::kWarpMask, waiting.rank, other.rank, -1, "",
                "thread " + std::to_string(waiting.rank) + " " + describe(waiting) + ", which names thread " +
                    std::to_string(other.rank) + ", but that " + describe(other));
    return;
  }
}

void Executor::explain_deadlock() {
  for (const auto& thread : threads_) {
    if (thread->state == HostThread::State::kInWarpOperation) return explain_warp_deadlock(*thread);
  }
  const HostThread* waiting = nullptr;
  const HostThread* missing = nullptr;
  for (const auto& thread : threads_) {
    using State = HostThread::State;
    if (thread->state == State::kAtBarrier && waiting == nullptr) waiting = thread.get();
    if ((thread->state == State::kFinished || thread->state == State::kAtTeamBarrier) && missing == nullptr)
      missing = thread.get();
  }
  if (waiting == nullptr || missing == nullptr) return;
  add_finding(FindingKind::kDivergentBarrier, waiting->rank, missing->rank, -1, "",
              "thread " + std::to_string(waiting->rank) + " " + describe(*waiting) + ", but thread " +
                  std::to_string(missing->rank) + " " + describe(*missing));
}

}  // namespace twinbench::kernels::simt
