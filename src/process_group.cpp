// Gloo and the loop-back behind c10d, alone here: its headers take long to compile.
#define USE_C10D_GLOO
#include "src/process_group.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "src/common/error.h"
#include "src/common/first_line.h"
#include "src/loop_back.h"

namespace twinbench {

// By way of the dispatcher (c10d::allreduce_), so that calls are counted like operators.
struct ProcessGroup::Calls {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  std::vector<c10::intrusive_ptr<c10d::Work>> begun;
};

namespace {

[[noreturn]] void lost(int rank, const std::string& what) {
  throw Error(ErrorKind::kInputOutput, "all-reduce of rank " + std::to_string(rank), first_line(what),
              "another rank ended or is late: see its own message");
}

template <typename Action>
void named(int rank, const Action& action) {
  try {
    action();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    lost(rank, error.what());
  }
}

c10::intrusive_ptr<c10d::ProcessGroup> group_over(const c10::intrusive_ptr<c10d::Backend>& backend,
                                                  c10d::ProcessGroup::BackendType type) {
  auto group = c10::make_intrusive<c10d::ProcessGroup>(backend->getRank(), backend->getSize());
  group->setBackend(c10::DeviceType::CPU, type, backend);
  group->setDefaultBackend(type);
  return group;
}

c10::intrusive_ptr<c10d::ProcessGroup> meet(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks,
                                            double timeout_s) {
  const std::chrono::milliseconds timeout(static_cast<std::int64_t>(timeout_s * 1e3));
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  named(rank, [&] {
    store->setTimeout(timeout);
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    // By address: a machine's own name may resolve to nothing.
    options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
    group = group_over(c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, ranks, options),
                       c10d::ProcessGroup::BackendType::GLOO);
  });
  return group;
}

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<Calls> calls, int rank, int ranks)
    : c10d_(std::move(calls)), rank_(rank), ranks_(ranks) {}

ProcessGroup::ProcessGroup(const std::string& file, int rank, int ranks, double timeout_s)
    : c10d_(std::make_unique<Calls>()), rank_(rank), ranks_(ranks) {
  c10d_->group = meet(c10::make_intrusive<c10d::FileStore>(file, ranks), rank, ranks, timeout_s);
}

std::vector<std::unique_ptr<ProcessGroup>> ProcessGroup::loop_back(int ranks) {
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  for (const auto& backend : loop_back_ranks(ranks)) {
    auto calls = std::make_unique<Calls>();
    calls->group = group_over(backend, c10d::ProcessGroup::BackendType::CUSTOM);
    groups.emplace_back(new ProcessGroup(std::move(calls), backend->getRank(), ranks));
  }
  return groups;
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::count(const at::Tensor& tensor) {
  ++calls_;
  bytes_ += static_cast<std::int64_t>(tensor.nbytes());
}

void ProcessGroup::all_reduce(const at::Tensor& tensor) {
  count(tensor);
  std::vector<at::Tensor> tensors = {tensor.cpu().contiguous()};
  named(rank_, [&] { c10d_->group->allreduce(tensors)->wait(); });
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

void ProcessGroup::begin_all_reduce(const at::Tensor& tensor) {
  count(tensor);
  std::vector<at::Tensor> tensors = {tensor};
  named(rank_, [&] { c10d_->begun.push_back(c10d_->group->allreduce(tensors)); });
}

void ProcessGroup::begin_all_reduce_together(const std::vector<at::Tensor>& tensors) {
  if (tensors.empty()) return;
  ++calls_;
  for (const at::Tensor& tensor : tensors) bytes_ += static_cast<std::int64_t>(tensor.nbytes());
  std::vector<at::Tensor> given = tensors;
  named(rank_, [&] { c10d_->begun.push_back(c10d_->group->allreduce_coalesced(given)); });
}

void ProcessGroup::begin_broadcast(const at::Tensor& tensor) {
  std::vector<at::Tensor> tensors = {tensor};
  named(rank_, [&] { c10d_->begun.push_back(c10d_->group->broadcast(tensors)); });
}

std::int64_t ProcessGroup::done() const {
  return std::count_if(c10d_->begun.begin(), c10d_->begun.end(), [](const auto& work) { return work->isCompleted(); });
}

void ProcessGroup::wait_all() {
  named(rank_, [&] {
    for (const auto& work : c10d_->begun) work->wait();
  });
  c10d_->begun.clear();
}

}  // namespace twinbench
