// Data parallelism with real processes: equal bits after 200 windows; a rank that dies or hangs is told by all the
// others in bounded time, and the run goes on from its last checkpoint.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "optimized/energy_flow/common/rank_trainer.h"
#include "src/common/philox.h"
#include "src/energy_flow/common/window_rows.h"
#include "src/formats/checkpoint_file.h"

namespace twinbench::energy_flow::data_parallel {
namespace {

constexpr std::int64_t kElements = 3000, kSaveEvery = 3;
constexpr double kTimeout_s = 3;

enum class Fate { kNone, kDies, kHangs, kDrifts };

struct Plan {
  int ranks = 3;
  std::int64_t windows = 12;
  Fate fate = Fate::kNone;  // of rank 1, at the beginning of window `at`
  std::int64_t at = 0;
  std::int64_t digest_every = 5, bucket_bytes = 4096;
};

// A gradient that depends on the parameters, so that ranks that drift apart go on drifting.
void gradient_of(int rank, std::int64_t window, const at::Tensor& parameters, float* gradient) {
  const float* const values = parameters.const_data_ptr<float>();
  for (std::uint32_t i = 0; i < kElements; ++i) {
    const PhiloxWords words = philox(static_cast<std::uint64_t>(window), i, static_cast<std::uint32_t>(rank), 0, 0);
    gradient[i] = 0.1f * values[i] + philox_normal_pair(words.w[0], words.w[1]).cosine;
  }
}

std::span<std::uint8_t> bytes_in(const at::Tensor& tensor) {
  return {static_cast<std::uint8_t*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

// One rank's run, from the last checkpoint where there is one; rank 0 saves. Returns the parameters at the end.
at::Tensor train(const Plan& plan, int rank, const std::string& folder, const std::string& store) {
  ProcessGroup group(store, rank, plan.ranks, kTimeout_s);
  std::vector<TensorPlace> tensors = {{0, 1000}, {1000, 7}};  // and many small ones: a lost rank is waited for once
  for (std::int64_t first = 1007; first < kElements; first += 100)
    tensors.push_back({first, std::min<std::int64_t>(100, kElements - first)});
  RankTrainer trainer(&group, tensors, kElements, {.bucket_bytes = plan.bucket_bytes});
  const at::Tensor state[] = {at::ones({kElements}), at::zeros({kElements}), at::full({kElements}, 1e-4)};
  const char* const names[] = {"parameters", "first_moment", "second_moment"};
  const std::string path = folder + "/last.efck";
  std::int64_t begin = 0;
  if (std::filesystem::exists(path)) {
    const CheckpointFile file(path);
    for (int i = 0; i < 3; ++i) file.view().read(names[i], ElementType::kF32, {kElements}, bytes_in(state[i]));
    begin = std::stoll(file.view().metadata().at("windows"));
  }
  PlaneCompressor compressor;
  std::vector<float> gradient(kElements);
  for (std::int64_t window = begin; window < plan.windows; ++window) {
    if (rank == 1 && window == plan.at && plan.fate == Fate::kDies) ::kill(::getpid(), SIGKILL);
    if (rank == 1 && window == plan.at && plan.fate == Fate::kHangs) ::pause();
    if (rank == 1 && window == plan.at && plan.fate == Fate::kDrifts) state[0].mutable_data_ptr<float>()[77] += 1e-6f;
    std::int64_t all = 0;
    for (int one = 0; one < plan.ranks; ++one) all += 14 - 4 * one;
    gradient_of(rank, window, state[0], gradient.data());
    trainer.micro_step(gradient.data(), 14 - 4 * rank, true, true);
    trainer.finish_window(state[0].mutable_data_ptr<float>(), state[1].mutable_data_ptr<float>(),
                          state[2].mutable_data_ptr<float>(), all, window + 1);
    if ((window + 1) % plan.digest_every == 0) ParameterDigest(group, state[0]).check(window + 1);
    if (rank > 0 || (window + 1) % kSaveEvery != 0) continue;
    std::vector<TensorBytes> sections;
    for (int i = 0; i < 3; ++i) sections.push_back({names[i], ElementType::kF32, {kElements}, bytes_in(state[i])});
    write_checkpoint(path, sections, {{"windows", std::to_string(window + 1)}}, 1, SectionCodec::kPlanes, compressor);
  }
  return state[0];
}

struct RankEnd {
  int status = 0;    // as waitpid gives it
  std::string said;  // parameters' bytes, or the error
};

// All ranks as processes of their own; the one that hangs is killed when the others have ended.
std::vector<RankEnd> run_ranks(const Plan& plan, const std::string& folder, int attempt) {
  const std::string store = folder + "/store_" + std::to_string(attempt);
  std::vector<pid_t> children;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    at::set_num_threads(1);         // the parent's threads are not here
    std::signal(SIGPIPE, SIG_IGN);  // as in every process of `twinbench` that is a rank
    int code = 0;
    std::ofstream said(folder + "/rank_" + std::to_string(rank), std::ios::binary);
    try {
      const at::Tensor end = train(plan, rank, folder, store);
      said.write(static_cast<const char*>(end.const_data_ptr()), static_cast<std::streamsize>(end.nbytes()));
    } catch (const std::exception& error) {
      said << error.what();
      code = 3;
    }
    said.close();
    ::_exit(code);
  }
  std::vector<RankEnd> ends(children.size());
  for (const bool hung : {false, true})
    for (std::size_t rank = 0; rank < children.size(); ++rank) {
      if ((rank == 1 && plan.fate == Fate::kHangs) != hung) continue;
      if (hung) ::kill(children[rank], SIGKILL);
      EXPECT_EQ(::waitpid(children[rank], &ends[rank].status, 0), children[rank]);
      std::ifstream file(folder + "/rank_" + std::to_string(rank), std::ios::binary);
      ends[rank].said = {std::istreambuf_iterator<char>(file), {}};
    }
  return ends;
}

bool succeeded(const RankEnd& end) { return WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0; }

TEST(DataParallel, RanksHaveEqualBitsAfter200Windows) {
  for (const int ranks : {1, 2, 4}) {
    const TemporaryDirectory folder;
    const auto ends = run_ranks({.ranks = ranks, .windows = 200}, folder.path(), 0);
    for (const RankEnd& end : ends) {
      ASSERT_TRUE(succeeded(end)) << end.said;
      EXPECT_EQ(end.said.size(), kElements * sizeof(float));
      EXPECT_EQ(end.said, ends.front().said);
    }
  }
}

TEST(DataParallel, ALostRankIsNamedByAllOthersAndTheRunResumes) {
  const TemporaryDirectory undisturbed;
  const auto expected = run_ranks({}, undisturbed.path(), 0);
  ASSERT_TRUE(succeeded(expected[0])) << expected[0].said;
  for (const Fate fate : {Fate::kDies, Fate::kHangs}) {
    const TemporaryDirectory folder;
    const auto before = std::chrono::steady_clock::now();
    const auto ends = run_ranks({.fate = fate, .at = 7, .bucket_bytes = 1000}, folder.path(), 0);
    const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
    EXPECT_LT(took_s, 4 * kTimeout_s) << "nobody waits for ever";
    EXPECT_TRUE(WIFSIGNALED(ends[1].status));
    for (const std::size_t other : {std::size_t{0}, std::size_t{2}}) {
      EXPECT_TRUE(WIFEXITED(ends[other].status) && WEXITSTATUS(ends[other].status) == 3)
          << "rank " << other << " ended with " << ends[other].status;
      EXPECT_NE(ends[other].said.find("all-reduce of rank " + std::to_string(other)), std::string::npos)
          << ends[other].said;
    }
    const auto resumed = run_ranks({}, folder.path(), 1);
    for (const RankEnd& end : resumed) {
      ASSERT_TRUE(succeeded(end)) << end.said;
      EXPECT_EQ(end.said, expected[0].said) << "from window 6 on";
    }
  }
}

TEST(DataParallel, ARankThatDriftsIsNamed) {
  const TemporaryDirectory folder;
  const auto ends = run_ranks({.fate = Fate::kDrifts, .at = 2}, folder.path(), 0);
  EXPECT_NE(ends[1].said.find("parameters of rank 1"), std::string::npos) << ends[1].said;
  EXPECT_NE(ends[1].said.find("after window 5"), std::string::npos) << ends[1].said;
}

TEST(DataParallel, BucketsHoldWholeTensorsFromTheLastOn) {
  const auto text = [](std::int64_t bytes) {
    std::string result;
    for (const auto& [first, count] : buckets_of({{0, 10}, {10, 0}, {10, 5}, {15, 100}, {115, 3}}, bytes))
      result += std::to_string(first) + "+" + std::to_string(count) + " ";
    return result;
  };
  EXPECT_EQ(text(1 << 20), "0+118 ");
  EXPECT_EQ(text(60), "115+3 15+100 0+15 ") << "a tensor that is larger goes alone";
  EXPECT_EQ(text(59), "115+3 15+100 10+5 0+10 ");
}

}  // namespace
}  // namespace twinbench::energy_flow::data_parallel
