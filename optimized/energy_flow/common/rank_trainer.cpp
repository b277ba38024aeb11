// Buckets, sums and updates of one rank.
#include "optimized/energy_flow/common/rank_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "optimized/common/adamw_rows.h"

namespace twinbench::energy_flow {
namespace {

// Weighed by rows, a whole number, so that the same rows give the same sum however ranks share them, but for rounding.
TWINBENCH_CPU_CLONES void weigh(float* __restrict sums, const float* __restrict gradient, float rows,
                                std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] = rows * gradient[i];
}
TWINBENCH_CPU_CLONES void weigh_and_add(float* __restrict sums, const float* __restrict gradient, float rows,
                                        std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += rows * gradient[i];
}

constexpr std::int64_t kPiece = 8192, kLeastPieces = 4;  // elements; pieces of a thread

// Calls it for pieces of the elements, the same pieces on any number of threads.
template <class Body>
void each_piece(std::int64_t count, const Body& body) {
  at::parallel_for(0, (count + kPiece - 1) / kPiece, kLeastPieces, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i, i * kPiece, std::min(kPiece, count - i * kPiece));
  });
}

void add(float* sums, const float* gradient, std::int64_t rows, bool first, std::int64_t count) {
  if (rows == 0 && first) std::fill_n(sums, count, 0.0f);
  if (rows == 0) return;
  each_piece(count, [&](std::int64_t, std::int64_t from, std::int64_t size) {
    (first ? weigh : weigh_and_add)(sums + from, gradient + from, static_cast<float>(rows), size);
  });
}

}  // namespace

std::vector<TensorPlace> buckets_of(const std::vector<TensorPlace>& tensors, std::int64_t bucket_bytes) {
  std::vector<TensorPlace> buckets;
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const TensorPlace& tensor = tensors[i];
    const auto bytes = [](std::int64_t elements) { return elements * static_cast<std::int64_t>(sizeof(float)); };
    if (buckets.empty() || bytes(buckets.back().count + tensor.count) > bucket_bytes)
      buckets.push_back({tensor.first, 0});
    buckets.back().first = tensor.first;
    buckets.back().count += tensor.count;
  }
  std::erase_if(buckets, [](const TensorPlace& bucket) { return bucket.count == 0; });
  return buckets;
}

RankTrainer::RankTrainer(ProcessGroup* group, const std::vector<TensorPlace>& tensors, std::int64_t elements,
                         RankRule rule)
    : group_(group),
      rule_(rule),
      sums_(at::zeros({elements}, at::kFloat)),
      buckets_(buckets_of(tensors, rule.bucket_bytes)),
      squares_(static_cast<std::size_t>((elements + kPiece - 1) / kPiece)) {
  for (const TensorPlace& bucket : buckets_) parts_.push_back(sums_.narrow(0, bucket.first, bucket.count));
}

void RankTrainer::micro_step(const float* gradient, std::int64_t rows, bool first, bool last) {
  float* const sums = sums_.mutable_data_ptr<float>();
  if (!last) return add(sums, gradient, rows, first, sums_.numel());
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto [begin, count] = buckets_[i];
    add(sums + begin, gradient + begin, rows, first, count);
    if (group_ != nullptr) group_->begin_all_reduce(parts_[i]);
  }
  if (group_ != nullptr && !buckets_.empty())
    overlap_ = static_cast<double>(group_->done()) / static_cast<double>(buckets_.size());
}

WindowEnd RankTrainer::finish_window(float* parameters, float* first, float* second, std::int64_t all_rows,
                                     std::int64_t update) {
  if (group_ != nullptr) group_->wait_all();
  float* const sums = sums_.mutable_data_ptr<float>();
  const auto rows = static_cast<double>(all_rows);
  each_piece(sums_.numel(), [&](std::int64_t piece, std::int64_t from, std::int64_t count) {
    squares_[static_cast<std::size_t>(piece)] = sum_of_squares(sums + from, count);
  });
  const double norm =  // the same bits in every rank
      std::sqrt(std::accumulate(squares_.begin(), squares_.end(), 0.0)) / rows;
  mean_of_sum_ = 1 / rows;
  if (!std::isfinite(norm)) return {false, norm};
  const double clip = clip_coefficient(norm, rule_.clip);
  const kernels::AdamwStep step = kernels::adamw_step(update, clip / rows, rule_.learning_rate, rule_.weight_decay);
  each_piece(sums_.numel(), [&](std::int64_t, std::int64_t from, std::int64_t count) {
    update_row(parameters + from, sums + from, first + from, second + from, count, step, /*clears=*/false);
  });
  mean_of_sum_ = 1 / clip;  // what is left are the clipped gradients
  return {true, norm};
}

at::Tensor RankTrainer::mean_gradient() const { return sums_.mul(mean_of_sum_); }

}  // namespace twinbench::energy_flow
