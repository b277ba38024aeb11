// Optimized energy_flow.memory_lifetime on the CPU: parameters, scratch and an arena for one micro-step's tape are
// taken at set-up; a micro-step takes nothing, and its tape is given up as a whole when it has gone back.
//
// The tape holds of a layer's step what the way back reads: the state before it is that of the step before; gates, the
// hidden candidate product and the next state, five numbers a channel (C34: 5 L Hc of a flow-step).
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "kernels/energy_flow/common/gru_gradients.h"
#include "src/common/cpu_clones.h"
#include "src/component.h"
#include "src/energy_flow/common/lifetime_work.h"
#include "src/energy_flow/common/memory_pool.h"

namespace twinbench::energy_flow::memory_lifetime {
namespace {

constexpr std::int64_t kLeastChannels = 4096;  // of a share of the rows, that pay for waking a thread

enum Kept : std::int64_t { kReset, kUpdate, kCandidate, kProduct, kNext, kKept };

// Rows of flows, one layer: sums of both products [3 * hidden] to gates and the next state.
struct ForwardRows {
  std::int64_t hidden;
  const float *in, *of_hidden, *before;
  float* kept[kKept];
};
// Pointers of their own, so that the compiler sees that none reaches into another's numbers, and takes whole vectors.
TWINBENCH_CPU_CLONES static void forward_rows(const ForwardRows& a, std::int64_t begin, std::int64_t end) {
  const std::int64_t hidden = a.hidden;
  for (std::int64_t row = begin; row < end; ++row) {
    const float* __restrict in = a.in + 3 * hidden * row;
    const float* __restrict own = a.of_hidden + 3 * hidden * row;
    const float* __restrict before = a.before + hidden * row;
    float* __restrict reset = a.kept[kReset] + hidden * row;
    float* __restrict update = a.kept[kUpdate] + hidden * row;
    float* __restrict candidate = a.kept[kCandidate] + hidden * row;
    float* __restrict product = a.kept[kProduct] + hidden * row;
    float* __restrict next = a.kept[kNext] + hidden * row;
#pragma GCC ivdep
    for (std::int64_t c = 0; c < hidden; ++c) {
      const auto to = energy_carrier::gru_channel(in[c] + own[c], in[hidden + c] + own[hidden + c], in[2 * hidden + c],
                                                  own[2 * hidden + c], before[c]);
      reset[c] = to.reset;
      update[c] = to.update;
      candidate[c] = to.candidate;
      product[c] = own[2 * hidden + c];
      next[c] = to.next;
    }
  }
}

// And back: gradients of the sums of both products, and of the state before by the direct path.
struct BackwardRows {
  std::int64_t hidden;
  const float* kept[kKept];
  const float* before;
  float *adjoint, *in, *of_hidden;
};
TWINBENCH_CPU_CLONES static void backward_rows(const BackwardRows& a, std::int64_t begin, std::int64_t end) {
  const std::int64_t hidden = a.hidden;
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t first = hidden * row;
    const float* __restrict reset = a.kept[kReset] + first;
    const float* __restrict update = a.kept[kUpdate] + first;
    const float* __restrict candidate = a.kept[kCandidate] + first;
    const float* __restrict product = a.kept[kProduct] + first;
    const float* __restrict before = a.before + first;
    float* __restrict adjoint = a.adjoint + first;
    float* __restrict in = a.in + 3 * first;
    float* __restrict own = a.of_hidden + 3 * first;
#pragma GCC ivdep
    for (std::int64_t c = 0; c < hidden; ++c) {
      const auto of =
          energy_carrier::gru_channel_gradient(reset[c], update[c], candidate[c], product[c], before[c], adjoint[c]);
      in[c] = own[c] = of.reset_sum;
      in[hidden + c] = own[hidden + c] = of.update_sum;
      in[2 * hidden + c] = of.candidate_input;
      own[2 * hidden + c] = of.candidate_hidden;
      adjoint[c] = of.hidden;
    }
  }
}

float* floats(const at::Tensor& tensor) { return tensor.mutable_data_ptr<float>(); }

class Optimized final : public Runnable {
 public:
  Optimized(const NamedTensors& inputs, const Setting& s)
      : inputs_(inputs),
        flows_(s.size("flows")),
        hidden_(s.size("hidden")),
        layers_(s.size("layers")),
        steps_(s.size("steps")),
        micro_steps_(s.size("micro_steps")),
        window_(s.size("accumulation")),
        cleanup_(static_cast<std::int64_t>(s.option("memory_cleanup_interval"))),
        rate_(s.option("learning_rate")),
        pool_(static_cast<std::int64_t>(s.option("budget"))),
        weights_{taken(inputs["weight_input"].sizes(), "parameters"),
                 taken(inputs["weight_hidden"].sizes(), "parameters")},
        gradients_{taken(inputs["weight_input"].sizes(), "gradients"),
                   taken(inputs["weight_hidden"].sizes(), "gradients")},
        in_(rows(3)),
        of_hidden_(rows(3)),
        off_(rows(1)),
        start_(rows(1).zero_()),
        adjoint_(taken({layers_, flows_, hidden_}, "workspace")),
        arena_(pool_, kKept * steps_ * layers_ * flows_ * hidden_),
        loss_(at::zeros({micro_steps_}, at::kFloat)) {
    for (const char* name : {"input", "target"}) inputs_.set(name, inputs_[name].contiguous());
    parts_.resize(static_cast<std::size_t>(steps_ * layers_));
    reset();
  }

  void reset() override {
    weights_[0].copy_(inputs_["weight_input"]);
    weights_[1].copy_(inputs_["weight_hidden"]);
  }

  void run() override {
    pool_.restart_counts();
    predicates_ = 0;
    for (std::int64_t i = 0; i < micro_steps_; ++i) {
      const std::int64_t of_window = std::min(window_, micro_steps_ - i / window_ * window_);
      if (i % window_ == 0)
        for (const at::Tensor& gradient : gradients_) gradient.zero_();
      forward(i);
      backward(i, 1.0f / static_cast<float>(of_window * flows_));
      arena_.reset();
      pool_.relieve();
      if (i % window_ != of_window - 1) continue;
      for (std::size_t w = 0; w < 2; ++w) weights_[w].sub_(gradients_[w], rate_);
    }
  }

  NamedTensors outputs() override {
    const PoolCounts c = pool_.counts();
    return {{"weight_input", weights_[0].clone()},
            {"weight_hidden", weights_[1].clone()},
            {"loss", loss_},
            {"work", at::tensor({c.dev_alloc, c.dev_free, c.cache_trim, arena_.live_bytes(), arena_.peak_bytes(),
                                 c.live, c.reserved, c.peak, std::max(c.largest_free, arena_.free_bytes()),
                                 c.total_free + arena_.free_bytes(), predicates_},
                                at::kLong)}};
  }

 private:
  at::Tensor taken(at::IntArrayRef shape, const char* what) { return pool_.take(shape, at::kFloat, what); }
  at::Tensor rows(std::int64_t gates) { return taken({flows_, gates * hidden_}, "workspace"); }

  // A layer's step on the tape: its part [kKept][flows][hidden].
  float* kept(std::int64_t t, std::int64_t layer, std::int64_t which) const {
    return arena_.data(parts_[static_cast<std::size_t>(t * layers_ + layer)]) + which * flows_ * hidden_;
  }
  float* state_before(std::int64_t t, std::int64_t layer) const {
    return t == 0 ? floats(start_) : kept(t - 1, layer, kNext);
  }
  at::Tensor matrix(float* values) const { return at::from_blob(values, {flows_, hidden_}, at::kFloat); }
  // What a layer's step takes in beside its state.
  at::Tensor taken_in(std::int64_t i, std::int64_t t, std::int64_t layer) const {
    return layer == 0 ? inputs_["input"].select(0, i) : matrix(kept(t, layer - 1, kNext));
  }

  void forward(std::int64_t i) {
    for (std::int64_t t = 0; t < steps_; ++t) {
      for (std::int64_t layer = 0; layer < layers_; ++layer) {
        parts_[static_cast<std::size_t>(t * layers_ + layer)] = arena_.take(kKept * flows_ * hidden_);
        at::mm_out(in_, taken_in(i, t, layer), weights_[0].select(0, layer).t());
        float* const before = state_before(t, layer);
        at::mm_out(of_hidden_, matrix(before), weights_[1].select(0, layer).t());
        ForwardRows a{
            .hidden = hidden_, .in = floats(in_), .of_hidden = floats(of_hidden_), .before = before, .kept = {}};
        for (std::int64_t which = 0; which < kKept; ++which) a.kept[which] = kept(t, layer, which);
        at::parallel_for(0, flows_, std::max<std::int64_t>(1, kLeastChannels / hidden_),
                         [&a](std::int64_t begin, std::int64_t end) { forward_rows(a, begin, end); });
      }
      // Who is due for compaction is asked here, of plain numbers; with a constant population nobody is.
      if (cleanup_ > 0 && (t + 1) % cleanup_ == 0) ++predicates_;
    }
  }

  void backward(std::int64_t i, float scale) {
    const float *const last = state_before(steps_, layers_ - 1), *const target =
                                                                     inputs_["target"].const_data_ptr<float>() +
                                                                     i * flows_ * hidden_;
    float *const off = floats(off_), *const adjoint = floats(adjoint_);
    const std::int64_t numbers = flows_ * hidden_;
    std::fill_n(adjoint, (layers_ - 1) * numbers, 0.0f);
    for (std::int64_t c = 0; c < numbers; ++c) {
      off[c] = last[c] - target[c];
      adjoint[(layers_ - 1) * numbers + c] = off[c] * scale;
    }
    at::Tensor loss = loss_.narrow(0, i, 1).view({1, 1});
    at::mm_out(loss, off_.view({1, -1}), off_.view({-1, 1}));
    for (std::int64_t t = steps_ - 1; t >= 0; --t)
      for (std::int64_t layer = layers_ - 1; layer >= 0; --layer) step_back(i, t, layer);
  }

  void step_back(std::int64_t i, std::int64_t t, std::int64_t layer) {
    at::Tensor adjoint = adjoint_.select(0, layer), grad_in = gradients_[0].select(0, layer),
               grad_hidden = gradients_[1].select(0, layer);
    float* const before = state_before(t, layer);
    BackwardRows a{.hidden = hidden_,
                   .kept = {},
                   .before = before,
                   .adjoint = floats(adjoint),
                   .in = floats(in_),
                   .of_hidden = floats(of_hidden_)};
    for (std::int64_t which = 0; which < kKept; ++which) a.kept[which] = kept(t, layer, which);
    at::parallel_for(0, flows_, std::max<std::int64_t>(1, kLeastChannels / hidden_),
                     [&a](std::int64_t begin, std::int64_t end) { backward_rows(a, begin, end); });
    at::addmm_out(adjoint, adjoint, of_hidden_, weights_[1].select(0, layer));
    at::addmm_out(grad_in, grad_in, in_.t(), taken_in(i, t, layer));
    at::addmm_out(grad_hidden, grad_hidden, of_hidden_.t(), matrix(before));
    if (layer == 0) return;
    at::Tensor lower = adjoint_.select(0, layer - 1);
    at::addmm_out(lower, lower, in_, weights_[0].select(0, layer));
  }

  NamedTensors inputs_;
  const std::int64_t flows_, hidden_, layers_, steps_, micro_steps_, window_, cleanup_;
  const double rate_;
  MemoryPool pool_;
  at::Tensor weights_[2], gradients_[2];  // of the input, of the hidden state
  at::Tensor in_, of_hidden_, off_, start_, adjoint_;
  TapeArena arena_;
  at::Tensor loss_;
  std::vector<TapeArena::Part> parts_;  // [steps * layers]
  std::int64_t predicates_ = 0;
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Optimized>(inputs, setting);
}

}  // namespace twinbench::energy_flow::memory_lifetime
