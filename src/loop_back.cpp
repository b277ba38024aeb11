// Meetings in the order in which they were asked for; the last rank to come does the work of one.
#include "src/loop_back.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::int64_t kBlock = 4096;  // elements: those of a few ranks stay in the first caches

template <typename Value>
void sum_elements(const std::vector<at::Tensor>& by_rank) {
  std::vector<Value*> values;
  for (const at::Tensor& tensor : by_rank) values.push_back(tensor.mutable_data_ptr<Value>());
  const auto add_up = [&](std::int64_t begin, std::int64_t count) {
    Value* const sum = values.front() + begin;
    for (std::size_t rank = 1; rank < values.size(); ++rank) {
      const Value* const other = values[rank] + begin;
      for (std::int64_t i = 0; i < count; ++i) sum[i] += other[i];
    }
    for (std::size_t rank = 1; rank < values.size(); ++rank) std::copy_n(sum, count, values[rank] + begin);
  };
  at::parallel_for(0, by_rank.front().numel(), 8 * kBlock, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += kBlock) add_up(at, std::min(kBlock, end - at));
  });
}

void sum_of_all(const std::vector<at::Tensor>& by_rank) {
  if (by_rank.front().scalar_type() == at::kDouble) return sum_elements<double>(by_rank);
  sum_elements<float>(by_rank);
}

void that_of_the_first(const std::vector<at::Tensor>& by_rank) {
  for (std::size_t rank = 1; rank < by_rank.size(); ++rank)
    std::copy_n(static_cast<const std::byte*>(by_rank.front().const_data_ptr()), by_rank.front().nbytes(),
                static_cast<std::byte*>(by_rank[rank].mutable_data_ptr()));  // of nothing both may be null
}

class Asked : public c10d::Work {
 public:
  explicit Asked(int rank) : Work(rank) {}
  void complete() { finish(); }
  bool wait(std::chrono::milliseconds) override {
    if (isCompleted()) return true;
    throw Error(ErrorKind::kInternal, "loop-back rank " + std::to_string(rank_), "waits for ranks of its own thread",
                "ask for all ranks before any of them waits");
  }
};

using Action = void (*)(const std::vector<at::Tensor>& by_rank);

struct Meeting {
  Action action = nullptr;
  std::vector<std::vector<at::Tensor>> tensors;  // by rank
  std::vector<c10::intrusive_ptr<Asked>> asked;  // by coming
};

struct Room {
  std::int64_t over = 0;  // meetings
  std::vector<Meeting> open;
};

class LoopBack : public c10d::Backend {
 public:
  LoopBack(std::shared_ptr<Room> room, int rank, int ranks) : Backend(rank, ranks), room_(std::move(room)) {}

  const std::string getBackendName() const override { return "loop_back"; }
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions&) override {
    return meet(sum_of_all, tensors);
  }
  c10::intrusive_ptr<c10d::Work> allreduce_coalesced(std::vector<at::Tensor>& tensors,
                                                     const c10d::AllreduceCoalescedOptions&) override {
    return meet(sum_of_all, tensors);
  }
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions&) override {
    return meet(that_of_the_first, tensors);
  }

 private:
  c10::intrusive_ptr<c10d::Work> meet(Action action, const std::vector<at::Tensor>& tensors) {
    const auto place = static_cast<std::size_t>(asked_ - room_->over);
    if (place == room_->open.size()) room_->open.push_back({action, std::vector<std::vector<at::Tensor>>(ranks()), {}});
    Meeting& meeting = room_->open[place];
    check(meeting, action, tensors);
    ++asked_;
    meeting.tensors[static_cast<std::size_t>(getRank())] = tensors;
    meeting.asked.push_back(c10::make_intrusive<Asked>(getRank()));
    const c10::intrusive_ptr<c10d::Work> mine = meeting.asked.back();
    if (meeting.asked.size() == ranks()) finish(meeting);
    return mine;
  }

  // The first meeting that is open: ranks come to them in order.
  void finish(const Meeting& meeting) {
    for (std::size_t i = 0; i < meeting.tensors.front().size(); ++i) {
      std::vector<at::Tensor> by_rank;
      for (const auto& tensors : meeting.tensors) by_rank.push_back(tensors[i]);
      meeting.action(by_rank);
    }
    for (const auto& asked : meeting.asked) asked->complete();
    room_->open.erase(room_->open.begin());
    ++room_->over;
  }

  void check(const Meeting& meeting, Action action, const std::vector<at::Tensor>& tensors) const {
    bool same = meeting.action == action;
    for (const auto& others : meeting.tensors) {
      if (others.empty()) continue;
      same = same && others.size() == tensors.size();
      for (std::size_t i = 0; same && i < tensors.size(); ++i)
        same = others[i].sizes() == tensors[i].sizes() && others[i].scalar_type() == tensors[i].scalar_type();
    }
    if (!same)
      throw Error(ErrorKind::kInternal, "loop-back rank " + std::to_string(getRank()), "asks for something else",
                  "all ranks ask for the same in the same order, with tensors of the same sizes");
  }

  std::size_t ranks() const { return static_cast<std::size_t>(getSize()); }

  std::shared_ptr<Room> room_;
  std::int64_t asked_ = 0;
};

}  // namespace

std::vector<c10::intrusive_ptr<c10d::Backend>> loop_back_ranks(int ranks) {
  const auto room = std::make_shared<Room>();
  std::vector<c10::intrusive_ptr<c10d::Backend>> backends;
  for (int rank = 0; rank < ranks; ++rank) backends.push_back(c10::make_intrusive<LoopBack>(room, rank, ranks));
  return backends;
}

}  // namespace twinbench
