// Baseline of energy_flow.memory_lifetime: every operator's output is a tensor of its own, which the tape holds; the
// documented sins say for how long.
#include <ATen/ATen.h>

#include "src/component.h"
#include "src/energy_flow/common/lifetime_work.h"
#include "src/energy_flow/common/memory_pool.h"

namespace twinbench::energy_flow::memory_lifetime {
namespace {

constexpr std::int64_t kScanEvery = 8;  // flow steps
constexpr const char* kWeights[] = {"weight_input", "weight_hidden"};

// One layer's step: what its operators have put out.
struct Entry {
  at::Tensor in, hidden, gates_in, gates_hidden, reset_sum, reset, update_sum, update, scaled, candidate_sum, candidate,
      difference, part, next;
};

struct Tape {
  std::vector<at::Tensor> start;  // states of zeros
  std::vector<Entry> entries;
};

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& s)
      : s_(s),
        inputs_(inputs),
        type_(inputs["input"].scalar_type()),
        flows_(s.size("flows")),
        hidden_(s.size("hidden")),
        loss_(at::zeros({s.size("micro_steps")}, type_)),
        pool_(static_cast<std::int64_t>(s.option("budget"))) {
    for (std::int64_t rows = 1; rows <= s.size("accumulation"); ++rows)
      scales_.push_back(at::full({}, 1.0 / static_cast<double>(rows * flows_), type_));
    for (const char* name : kWeights) {
      values_.push_back(pool_.take(inputs_[name].sizes(), type_, "parameters"));
      gradients_.push_back(pool_.take(inputs_[name].sizes(), type_, "gradients"));
    }
    reset();
  }

  void reset() override {
    release();
    for (std::size_t w = 0; w < 2; ++w) values_[w].copy_(inputs_[kWeights[w]]);
  }

  void run() override {
    const std::int64_t all = s_.size("micro_steps"), window = s_.size("accumulation");
    pool_.restart_counts();
    for (std::int64_t i = 0; i < all; ++i) {
      const std::int64_t of_window = std::min(window, all - i / window * window);
      if (i % window == 0)
        for (const at::Tensor& gradient : gradients_) gradient.zero_();
      micro_step(i, scales_[static_cast<std::size_t>(of_window - 1)]);
      if (i % window == of_window - 1) {
        for (std::size_t w = 0; w < 2; ++w) values_[w].sub_(gradients_[w], s_.option("learning_rate"));
        window_.clear();
      }
      if (s_.on("trim_every_step")) pool_.trim();
    }
    counts_ = pool_.counts(), tape_live_ = tape_bytes();
    release();
  }

  NamedTensors outputs() override {
    const PoolCounts& c = counts_;
    return {{"weight_input", values_[0].clone()},
            {"weight_hidden", values_[1].clone()},
            {"loss", loss_},
            {"work", at::tensor({c.dev_alloc, c.dev_free, c.cache_trim, tape_live_, tape_peak_, c.live, c.reserved,
                                 c.peak, c.largest_free, c.total_free, std::int64_t{0}},
                                at::kLong)}};
  }

 private:
  // A run is a process of its own: what it still holds, its cache too, ends with it.
  void release() {
    history_.clear(), window_.clear(), batches_.clear();
    if (pool_.counts().free_blocks > 0) pool_.trim();
  }

  at::Tensor one() { return pool_.take({flows_, hidden_}, type_, "tape"); }
  at::Tensor three() { return pool_.take({flows_, 3 * hidden_}, type_, "tape"); }
  at::Tensor gate(const at::Tensor& of, std::int64_t which) const { return of.narrow(1, which * hidden_, hidden_); }
  at::Tensor weight(std::size_t which, std::int64_t layer) const { return values_[which].select(0, layer); }

  void micro_step(std::int64_t i, const at::Tensor& scale) {
    at::Tensor input = one(), target = one();
    input.copy_(inputs_["input"].select(0, i));
    target.copy_(inputs_["target"].select(0, i));
    if (s_.on("resident_batches")) batches_.insert(batches_.end(), {input, target});
    Tape tape;
    std::vector<at::Tensor> states;
    for (std::int64_t layer = 0; layer < s_.size("layers"); ++layer) {
      states.push_back(one().zero_());
      tape.start.push_back(states.back());
    }
    for (std::int64_t t = 0; t < s_.size("steps"); ++t) {
      at::Tensor in = input;
      for (std::int64_t layer = 0; layer < s_.size("layers"); ++layer) {
        at::Tensor& state = states[static_cast<std::size_t>(layer)];
        tape.entries.push_back(forward(layer, in, state));
        in = state = tape.entries.back().next;
      }
      if (s_.on("host_scan") && (t + 1) % kScanEvery == 0) scan(tape);
      if (s_.on("reset_peak")) pool_.reset_peak();
    }
    at::Tensor off = one();
    at::sub_out(off, states.back(), target);
    at::Tensor loss = loss_.narrow(0, i, 1).view({1, 1});
    at::mm_out(loss, off.view({1, -1}), off.view({-1, 1}));
    tape_peak_ = std::max(tape_peak_, tape_bytes() + bytes_of(tape));
    backward(tape, off, scale);
    if (s_.on("attached_storage"))
      history_.push_back(std::move(tape));
    else if (s_.on("retained_tape"))
      window_.push_back(std::move(tape));
  }

  Entry forward(std::int64_t layer, const at::Tensor& in, const at::Tensor& hidden) {
    Entry e;
    e.in = in, e.hidden = hidden, e.gates_in = three(), e.gates_hidden = three();
    for (at::Tensor* of : {&e.reset_sum, &e.reset, &e.update_sum, &e.update, &e.scaled, &e.candidate_sum, &e.candidate,
                           &e.difference, &e.part, &e.next})
      *of = one();
    at::mm_out(e.gates_in, in, weight(0, layer).t());
    at::mm_out(e.gates_hidden, hidden, weight(1, layer).t());
    at::add_out(e.reset_sum, gate(e.gates_in, 0), gate(e.gates_hidden, 0));
    at::sigmoid_out(e.reset, e.reset_sum);
    at::add_out(e.update_sum, gate(e.gates_in, 1), gate(e.gates_hidden, 1));
    at::sigmoid_out(e.update, e.update_sum);
    at::mul_out(e.scaled, e.reset, gate(e.gates_hidden, 2));
    at::add_out(e.candidate_sum, gate(e.gates_in, 2), e.scaled);
    at::tanh_out(e.candidate, e.candidate_sum);
    at::sub_out(e.difference, hidden, e.candidate);
    at::mul_out(e.part, e.update, e.difference);
    at::add_out(e.next, e.candidate, e.part);
    return e;
  }

  void backward(const Tape& tape, const at::Tensor& off, const at::Tensor& scale) {
    const std::int64_t layers = s_.size("layers");
    std::vector<at::Tensor> adjoint;
    for (std::int64_t layer = 0; layer < layers; ++layer) adjoint.push_back(one().zero_());
    at::mul_out(adjoint.back(), off, scale);
    for (std::int64_t t = s_.size("steps") - 1; t >= 0; --t) {
      at::Tensor from_above;
      for (std::int64_t layer = layers - 1; layer >= 0; --layer) {
        at::Tensor& own = adjoint[static_cast<std::size_t>(layer)];
        if (from_above.defined()) own.add_(from_above), from_above.reset();
        from_above = step_back(tape.entries[static_cast<std::size_t>(t * layers + layer)], layer, own);
      }
    }
  }

  // The adjoint of the state becomes that of the state before; returns that of what came from below, if any.
  at::Tensor step_back(const Entry& e, std::int64_t layer, at::Tensor& adjoint) {
    at::Tensor update = one(), before = one(), candidate = one(), candidate_sum = one(), reset = one(),
               hidden_product = one(), reset_sum = one(), update_sum = one(), in = three(), hidden = three();
    at::mul_out(update, adjoint, e.difference);
    at::mul_out(before, adjoint, e.update);
    at::sub_out(candidate, adjoint, before);
    at::tanh_backward_out(candidate_sum, candidate, e.candidate);
    at::mul_out(reset, candidate_sum, gate(e.gates_hidden, 2));
    at::mul_out(hidden_product, candidate_sum, e.reset);
    at::sigmoid_backward_out(reset_sum, reset, e.reset);
    at::sigmoid_backward_out(update_sum, update, e.update);
    for (const auto& [which, of] : {std::pair(0, &reset_sum), std::pair(1, &update_sum)})
      for (const at::Tensor* to : {&in, &hidden}) gate(*to, which).copy_(*of);
    gate(in, 2).copy_(candidate_sum);
    gate(hidden, 2).copy_(hidden_product);
    at::addmm_out(before, before, hidden, weight(1, layer));
    at::Tensor grad_in = gradients_[0].select(0, layer), grad_hidden = gradients_[1].select(0, layer);
    at::addmm_out(grad_in, grad_in, in.t(), e.in);
    at::addmm_out(grad_hidden, grad_hidden, hidden.t(), e.hidden);
    adjoint = before;
    if (layer == 0) return {};
    at::Tensor below = one();
    at::mm_out(below, in, weight(0, layer));
    return below;
  }

  // Cleanup on the host: of every tape that is held, is its first flow still there?
  void scan(const Tape& current) {
    const auto look = [this](const Tape& tape) {
      completed_ += std::abs(tape.entries.back().next.select(0, 0).select(0, 0).item<double>()) > 1 ? 1 : 0;
    };
    for (const Tape& tape : history_) look(tape);
    for (const Tape& tape : window_) look(tape);
    look(current);
  }

  static std::int64_t bytes_of(const Tape& tape) {
    std::int64_t bytes = 0;
    for (const at::Tensor& of : tape.start) bytes += static_cast<std::int64_t>(of.nbytes());
    for (const Entry& e : tape.entries)
      for (const at::Tensor* of : {&e.gates_in, &e.gates_hidden, &e.reset_sum, &e.reset, &e.update_sum, &e.update,
                                   &e.scaled, &e.candidate_sum, &e.candidate, &e.difference, &e.part, &e.next})
        bytes += static_cast<std::int64_t>(of->nbytes());
    return bytes;
  }
  std::int64_t tape_bytes() const {
    std::int64_t bytes = 0;
    for (const Tape& tape : history_) bytes += bytes_of(tape);
    for (const Tape& tape : window_) bytes += bytes_of(tape);
    return bytes;
  }

  const Setting s_;
  const NamedTensors inputs_;
  const at::ScalarType type_;
  const std::int64_t flows_, hidden_;
  at::Tensor loss_;
  std::vector<at::Tensor> scales_;  // by the micro-steps of a window
  MemoryPool pool_;
  PoolCounts counts_;                           // when the last run had ended
  std::vector<at::Tensor> values_, gradients_;  // of the input, of the hidden state
  std::vector<Tape> history_, window_;
  std::vector<at::Tensor> batches_;
  std::int64_t tape_peak_ = 0, tape_live_ = 0, completed_ = 0;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::memory_lifetime
