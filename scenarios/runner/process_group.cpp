// Gloo behind c10d, alone here: its headers take long to compile.
#define USE_C10D_GLOO
#include "scenarios/runner/process_group.h"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>

#include "src/common/error.h"
#include "src/common/first_line.h"

namespace twinbench {

struct ProcessGroup::Gloo {
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
};

namespace {

[[noreturn]] void lost(int rank, const std::string& what) {
  throw Error(ErrorKind::kInputOutput, "all-reduce of rank " + std::to_string(rank), first_line(what),
              "another rank ended or is late: see its own message");
}

}  // namespace

ProcessGroup::ProcessGroup(const std::string& file, int rank, int ranks, double timeout_s)
    : gloo_(std::make_unique<Gloo>()), rank_(rank) {
  const std::chrono::milliseconds timeout(static_cast<std::int64_t>(timeout_s * 1e3));
  try {
    auto store = c10::make_intrusive<c10d::FileStore>(file, ranks);
    store->setTimeout(timeout);
    auto options = c10d::ProcessGroupGloo::Options::create(timeout);
    // By address: a machine's own name may resolve to nothing.
    options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
    gloo_->group = c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, ranks, options);
  } catch (const std::exception& error) {
    lost(rank, error.what());
  }
}

ProcessGroup::~ProcessGroup() = default;

void ProcessGroup::all_reduce(const at::Tensor& tensor) {
  ++calls_;
  bytes_ += static_cast<std::int64_t>(tensor.nbytes());
  std::vector<at::Tensor> tensors = {tensor.cpu().contiguous()};
  try {
    gloo_->group->allreduce(tensors)->wait();
  } catch (const std::exception& error) {
    lost(rank_, error.what());
  }
  if (!tensors[0].is_same(tensor)) tensor.copy_(tensors[0]);
}

}  // namespace twinbench
