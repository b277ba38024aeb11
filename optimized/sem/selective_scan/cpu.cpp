// Optimized sem.selective_scan on the CPU: one pass over time a batch item and group, tile after tile of steps in the
// first-level cache (forward_tile.h). Backward: the same pass leaves the state at every tile's start, a second one goes
// back.
#include <ATen/ATen.h>

#include <cmath>

#include "optimized/common/rows.h"
#include "optimized/sem/selective_scan/forward_tile.h"
#include "optimized/sem/selective_scan/tile.h"
#include "src/sem/common/scan_limits.h"

namespace twinbench::sem::selective_scan {
namespace {

template <class Real>
class CpuScan final : public Runnable {
 public:
  CpuScan(const NamedTensors& inputs, const Setting& setting)
      : backward_(setting.backward()),
        batch_(setting.size("batch")),
        steps_(setting.size("steps")),
        groups_(setting.size("groups")),
        width_(setting.size("width")),
        states_(setting.size("states")),
        lanes_(padded(states_)),
        columns_(padded(width_)),
        tiles_((steps_ + kTile - 1) / kTile),
        input_(inputs["input"].contiguous()),
        dt_weight_(inputs["dt_weight"].contiguous()),
        dt_bias_(inputs["dt_bias"].contiguous()),
        a_raw_(inputs["a_raw"].contiguous()),
        results_(backward_ ? zero_results(setting) : empty_results(setting)) {
    const at::Tensor &into = inputs["input_projection"], &out_of = inputs["output_projection"];
    into_packed_ = packed(into.transpose(1, 2), lanes_);
    rate_ = at::constant_pad_nd(rates(), {0, lanes_ - states_}).contiguous();
    phase_ = at::constant_pad_nd(inputs["a_phase"], {0, lanes_ - states_}).contiguous();
    shrinking_ = rate_.to(at::kDouble).div(Scale::kRate).to(rate_.dtype());
    half_turns_ = phase_.to(at::kDouble).div(Scale::kPhase).to(phase_.dtype());
    const std::int64_t items = batch_ * groups_;
    pieces_ = Pieces::of(items, grain(steps_ * states_ * (width_ + 4), 1 << 18), at::get_num_threads(), 1);
    if (backward_) {
      grad_output_ = inputs["grad_output"].contiguous();
      into_ = matrix(into.transpose(1, 2), lanes_, 1);
      out_of_back_ = matrix(out_of, lanes_, -1);
      into_back_ = matrix(into, columns_, -1);
      of_decays_ = at::empty({batch_, groups_ * 2 * lanes_}, input_.options());
      of_shared_ = at::empty({items, shared_size()}, input_.options());
      decay_sums_ = at::empty({of_decays_.size(1)}, input_.options());
      shared_sums_ = at::empty({shared_size()}, input_.options());
    } else {
      out_of_packed_ = packed(at::constant_pad_nd(out_of.transpose(1, 2), {0, 0, 0, lanes_ - states_}), columns_);
      largest_ = at::empty({items}, input_.options());
    }
    scratch_ =
        at::empty({std::max<std::int64_t>(pieces_.number(), 1), Scratch(*this, nullptr).floats}, input_.options());
  }

  void run() override {
    pieces_.each([&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
      const Scratch scratch(*this, data<Real>(scratch_) + piece * scratch_.size(1));
      for (std::int64_t item = begin; item < end; ++item) backward_ ? back(item, scratch) : forward(item, scratch);
    });
    backward_ ? add_up() : find_largest();
  }

  NamedTensors outputs() override { return results_; }

 private:
  using Numbers = Planes<Real>;

  // A thread's own arrays: of one tile, but for what the way back needs of all of them.
  struct Scratch {
    Real *parts, *steps, *exponentials, *most;  // [2 width][kTile]; [2][steps] twice; [lanes]
    Triple<Real> input, kept;  // [columns / kLanes][kTile][kLanes], times the steps' lengths; [kTile][kLanes]
    Real *sums, *out_sums;     // [kTile][3][kLanes], and as many as there are blocks of channels
    Numbers last;              // [lanes]: the state, later the gradient carried back
    Numbers projected, state, decay, of_output;  // backward: [kTile][lanes]
    Numbers out, starts;                         // backward: [kTile][columns]; [tiles][lanes]
    std::int64_t floats = 0;

    Scratch(const CpuScan& of, Real* at) {
      const auto take = [&](std::int64_t count) {
        count = padded(count);  // starts of whole cache lines
        Real* const mine = at == nullptr ? nullptr : at + floats;
        floats += count;
        return mine;
      };
      const auto numbers = [&](std::int64_t count) {
        Real* const real = take(count);
        return Numbers{real, take(count)};
      };
      const auto triple = [&](std::int64_t count) {
        const Numbers both = numbers(count);
        return Triple<Real>{both.real, both.imaginary, take(count)};
      };
      const bool back = of.backward_;
      const std::int64_t tile = back ? kTile * of.lanes_ : 0, all = back ? of.tiles_ : 1;
      parts = take(2 * of.width_ * kTile);
      steps = take(2 * all * kTile);
      exponentials = take(2 * all * kTile);
      most = take(of.lanes_);
      input = triple(kTile * of.columns_), kept = triple(kTile * kLanes);
      sums = take(kTile * kTriple), out_sums = take(kTile * kTriple * (of.columns_ / kLanes));
      last = numbers(of.lanes_);
      projected = numbers(tile), state = numbers(tile), decay = numbers(tile), of_output = numbers(tile);
      out = numbers(back ? kTile * of.columns_ : 0);
      starts = numbers(back ? all * of.lanes_ : 0);
    }
  };

  at::Tensor rates() const {
    const at::Tensor rate = at::empty_like(a_raw_);
    for (std::int64_t i = 0; i < rate.numel(); ++i) data<Real>(rate)[i] = softplus(data<Real>(a_raw_)[i]);
    return rate;
  }
  // A complex matrix [2, inner, columns], or its conjugate, padded to whole vectors.
  static at::Tensor matrix(const at::Tensor& planes, std::int64_t columns, int sign) {
    const at::Tensor wide = at::constant_pad_nd(planes, {0, columns - planes.size(2)}).contiguous();
    if (sign < 0) wide.select(0, 1).neg_();
    return wide;
  }
  // A complex matrix [2, inner, columns] as forward_tile takes it: [columns / kLanes][inner][2][kLanes].
  static at::Tensor packed(const at::Tensor& planes, std::int64_t columns) {
    const std::int64_t inner = planes.size(1);
    return at::constant_pad_nd(planes, {0, columns - planes.size(2)})
        .view({2, inner, columns / kLanes, kLanes})
        .permute({2, 1, 0, 3})
        .contiguous();
  }
  static Numbers planes(const at::Tensor& tensor) {
    return {data<Real>(tensor), data<Real>(tensor) + tensor.numel() / 2};
  }
  std::int64_t shared_size() const { return 4 * width_ * lanes_ + 4 * width_ + 2; }

  // Where a tile's rows of a [2, batch, steps, groups, width] tensor begin, and how far they are apart.
  std::int64_t place(std::int64_t item, std::int64_t first) const {
    return ((item / groups_ * steps_ + first) * groups_ + item % groups_) * width_;
  }
  Rows<Real> rows(const at::Tensor& tensor, std::int64_t item, std::int64_t first) const {
    return {planes(tensor).from(place(item, first)), groups_ * width_, 1};
  }
  Rows<Real> transposed(const at::Tensor& tensor, std::int64_t item, std::int64_t first) const {  // and conjugated
    return {planes(tensor).from(place(item, first)), 1, groups_ * width_, -1};
  }

  // Lengths and turns of a tile, and its inputs times the lengths.
  void prepare(std::int64_t item, std::int64_t first, std::int64_t count, const Scratch& scratch, Real* steps,
               Real* exponentials) const {
    const Rows<Real> input = rows(input_, item, first);
    for (std::int64_t t = 0; t < kTile; ++t) {
      const std::int64_t row = std::min(t, count - 1) * input.row_stride;
      for (std::int64_t k = 0; k < width_; ++k) {
        scratch.parts[k * kTile + t] = input.of.real[row + k];
        scratch.parts[(width_ + k) * kTile + t] = input.of.imaginary[row + k];
      }
    }
    for (int j = 0; j < 2; ++j)
      step_sizes<Real>(2 * width_, scratch.parts, data<Real>(dt_weight_) + j * 2 * width_, data<Real>(dt_bias_)[j],
                       exponentials + j * kTile, steps + j * kTile);
    for (std::int64_t t = 0; t < kTile; ++t) {
      const std::int64_t row = std::min(t, count - 1) * input.row_stride;
      for (std::int64_t k = 0; k < width_; k += kLanes)
        scale_row<Real>(std::min(kLanes, width_ - k), steps[t], input.of.from(row + k),
                        scratch.input.from(k * kTile + t * kLanes));
    }
  }
  // The states of a tile, from those before it, which become the last ones; and what the output is made of.
  void pass(std::int64_t item, std::int64_t count, const Scratch& scratch, const Real* steps) const {
    const std::int64_t group = item % groups_ * lanes_;
    forward_tile<Real>({count,
                        width_,
                        lanes_,
                        columns_,
                        steps,
                        scratch.input,
                        data<Real>(into_packed_),
                        backward_ ? nullptr : data<Real>(out_of_packed_),
                        {data<Real>(shrinking_) + group, data<Real>(half_turns_) + group, scratch.last.real,
                         scratch.last.imaginary, scratch.most},
                        scratch.sums,
                        scratch.kept,
                        scratch.out_sums});
  }
  Step<Real> step_of(std::int64_t item, const Real* steps, std::int64_t t) const {
    const std::int64_t group = item % groups_ * lanes_;
    return {steps[t],
            steps[kTile + t],
            data<Real>(rate_) + group,
            data<Real>(phase_) + group,
            data<Real>(shrinking_) + group,
            data<Real>(half_turns_) + group};
  }
  void clear(const Numbers& row) const {
    std::fill_n(row.real, lanes_, Real(0));
    std::fill_n(row.imaginary, lanes_, Real(0));
  }
  std::int64_t count_of(std::int64_t first) const { return std::min(kTile, steps_ - first); }

  void forward(std::int64_t item, const Scratch& scratch) const {
    clear(scratch.last);
    std::fill_n(scratch.most, lanes_, Real(0));
    for (std::int64_t first = 0; first < steps_; first += kTile) {
      const std::int64_t count = count_of(first);
      prepare(item, first, count, scratch, scratch.steps, scratch.exponentials);
      pass(item, count, scratch, scratch.steps);
      const Rows<Real> to = rows(results_["output"], item, first);
      for (std::int64_t t = 0; t < count; ++t)
        for (std::int64_t column = 0; column < width_; column += kLanes)
          whole_numbers<Real>(std::min(kLanes, width_ - column),
                              scratch.out_sums + (column / kLanes * kTile + t) * kTriple,
                              to.of.from(t * to.row_stride + column));
    }
    data<Real>(largest_)[item] = largest_of(scratch.most, states_);
  }

  // NaN wins.
  static Real largest_of(const Real* values, std::int64_t count) {
    Real most = 0;
    for (std::int64_t i = 0; i < count; ++i)
      if (values[i] > most || values[i] != values[i]) most = values[i];
    return most;
  }
  void find_largest() const {
    for (std::int64_t item = 0; item < batch_; ++item) {
      Real most = 0;
      for (std::int64_t group = 0; group < groups_; ++group) {
        const Real value = data<Real>(largest_)[item * groups_ + group];
        if (value > most || value != value) most = value;
      }
      data<Real>(results_["largest_state"])[item] = std::sqrt(most);
    }
  }

  // One group's share of every gradient, to its own rows.
  void back(std::int64_t item, const Scratch& scratch) const {
    for (std::int64_t tile = 0; tile < tiles_; ++tile) {  // first pass: every tile's start
      const Numbers start = scratch.starts.from(tile * lanes_);
      if (tile == 0) clear(scratch.last);
      std::copy_n(scratch.last.real, lanes_, start.real);
      std::copy_n(scratch.last.imaginary, lanes_, start.imaginary);
      Real *const steps = scratch.steps + tile * 2 * kTile, *const exponentials =
                                                                scratch.exponentials + tile * 2 * kTile;
      prepare(item, tile * kTile, count_of(tile * kTile), scratch, steps, exponentials);
      pass(item, count_of(tile * kTile), scratch, steps);
    }
    Real* const decays = data<Real>(of_decays_) + item * 2 * lanes_;
    Real* const shared = data<Real>(of_shared_) + item * shared_size();
    std::fill_n(decays, 2 * lanes_, Real(0));
    std::fill_n(shared, shared_size(), Real(0));
    clear(scratch.last);
    for (std::int64_t tile = tiles_ - 1; tile >= 0; --tile) tile_back(item, tile, scratch, decays, shared);
  }

  void tile_back(std::int64_t item, std::int64_t tile, const Scratch& scratch, Real* decays, Real* shared) const {
    const std::int64_t first = tile * kTile, count = count_of(first), of_product = width_ * lanes_;
    Real *const steps = scratch.steps + tile * 2 * kTile, *const exponentials = scratch.exponentials + tile * 2 * kTile;
    const Numbers start = scratch.starts.from(tile * lanes_);
    multiply_tile<Real>(count, width_, lanes_, rows(input_, item, first), planes(into_), scratch.projected, lanes_,
                        false);
    for (std::int64_t t = 0; t < count; ++t) {
      const Numbers in = scratch.projected.from(t * lanes_), out = scratch.state.from(t * lanes_),
                    decay = scratch.decay.from(t * lanes_),
                    before = t == 0 ? start : scratch.state.from((t - 1) * lanes_);
      scan_step_kept<Real>(lanes_, step_of(item, steps, t), in.real, in.imaginary, out.real, out.imaginary, decay.real,
                           decay.imaginary, before.real, before.imaginary);
    }
    multiply_tile<Real>(count, width_, lanes_, rows(grad_output_, item, first), planes(out_of_back_), scratch.of_output,
                        lanes_, false);
    // The conjugate of the output projection's gradient, from the states.
    multiply_tile<Real>(width_, count, lanes_, transposed(grad_output_, item, first), scratch.state,
                        {shared + 2 * of_product, shared + 3 * of_product}, lanes_, true);
    Real of_logits[2][kTile];
    for (std::int64_t t = count - 1; t >= 0; --t) {
      const Numbers of_output = scratch.of_output.from(t * lanes_), decay = scratch.decay.from(t * lanes_),
                    before = t == 0 ? start : scratch.state.from((t - 1) * lanes_),
                    projected = scratch.projected.from(t * lanes_);
      const StepSums<Real> sums =
          step_back<Real>(lanes_, step_of(item, steps, t), of_output.real, of_output.imaginary, decay.real,
                          decay.imaginary, before.real, before.imaginary, projected.real, projected.imaginary,
                          scratch.last.real, scratch.last.imaginary, decays, decays + lanes_);
      of_logits[0][t] = logit_gradient(exponentials[t], sums.of_length);
      of_logits[1][t] = logit_gradient(exponentials[kTile + t], sums.of_turn);
    }
    // `projected` holds its own gradient now.
    multiply_tile<Real>(width_, count, lanes_, transposed(input_, item, first), scratch.projected,
                        {shared, shared + of_product}, lanes_, true);
    multiply_tile<Real>(count, states_, columns_, {scratch.projected, lanes_, 1}, planes(into_back_), scratch.out,
                        columns_, false);
    const Rows<Real> input = rows(input_, item, first), to = rows(results_["grad_input"], item, first);
    Real *const of_weight = shared + 4 * of_product, *const of_bias = of_weight + 4 * width_;
    for (std::int64_t t = 0; t < count; ++t) {
      Real *const real = to.of.real + t * to.row_stride, *const imaginary = to.of.imaginary + t * to.row_stride;
      std::copy_n(scratch.out.real + t * columns_, width_, real);
      std::copy_n(scratch.out.imaginary + t * columns_, width_, imaginary);
      for (int j = 0; j < 2; ++j) {
        const Real of_logit = of_logits[j][t];
        const Real* const weight = data<Real>(dt_weight_) + j * 2 * width_;
        add_scaled<Real>(width_, of_logit, weight, real);
        add_scaled<Real>(width_, of_logit, weight + width_, imaginary);
        add_scaled<Real>(width_, of_logit, input.of.real + t * input.row_stride, of_weight + j * 2 * width_);
        add_scaled<Real>(width_, of_logit, input.of.imaginary + t * input.row_stride, of_weight + (j * 2 + 1) * width_);
        of_bias[j] += of_logit;
      }
    }
  }

  // Groups and batch items, in order, and the parameters' gradients from them.
  void add_up() const {
    sum_columns<Real>(of_decays_, decay_sums_);
    sum_columns<Real>(of_shared_, shared_sums_);
    const Real *const decays = data<Real>(decay_sums_), *const shared = data<Real>(shared_sums_);
    const auto gradient = [&](const char* name) { return data<Real>(results_[name]); };
    Real *const of_raw = gradient("grad_a_raw"), *const of_phase = gradient("grad_a_phase");
    for (std::int64_t group = 0; group < groups_; ++group)
      for (std::int64_t n = 0; n < states_; ++n) {
        const std::int64_t at = group * states_ + n;
        of_raw[at] = kernels::sigmoid(data<Real>(a_raw_)[at]) * decays[group * 2 * lanes_ + n];
        of_phase[at] = decays[(group * 2 + 1) * lanes_ + n];
      }
    const std::int64_t of_product = width_ * lanes_;
    Real *of_into = gradient("grad_input_projection"), *of_out_of = gradient("grad_output_projection");
    for (int plane = 0; plane < 2; ++plane) {
      const Real *const rows = shared + plane * of_product, sign = plane == 0 ? Real(1) : Real(-1);
      for (std::int64_t n = 0; n < states_; ++n)
        for (std::int64_t p = 0; p < width_; ++p) *of_into++ = rows[p * lanes_ + n];
      for (std::int64_t p = 0; p < width_; ++p)
        for (std::int64_t n = 0; n < states_; ++n) *of_out_of++ = sign * rows[2 * of_product + p * lanes_ + n];
    }
    std::copy_n(shared + 4 * of_product, 4 * width_, gradient("grad_dt_weight"));
    std::copy_n(shared + 4 * of_product + 4 * width_, 2, gradient("grad_dt_bias"));
  }

  const bool backward_;
  const std::int64_t batch_, steps_, groups_, width_, states_;
  const std::int64_t lanes_, columns_, tiles_;  // states and channels in whole vectors
  at::Tensor input_, dt_weight_, dt_bias_, a_raw_, grad_output_;
  at::Tensor into_packed_, out_of_packed_, into_, out_of_back_, into_back_;  // packed parameters
  at::Tensor rate_, phase_, shrinking_, half_turns_;                         // [groups, lanes]
  NamedTensors results_;
  Pieces pieces_;                        // of the batch items' groups
  at::Tensor scratch_, largest_;         // a row a piece; [items], squared
  at::Tensor of_decays_, of_shared_;     // [batch, groups][rates, phases][lanes]; [items][shared parameters]
  at::Tensor decay_sums_, shared_sums_;  // down their columns
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  if (setting.dtype == Dtype::kFp64) return std::make_unique<CpuScan<double>>(inputs, setting);
  return std::make_unique<CpuScan<float>>(inputs, setting);
}

}  // namespace twinbench::sem::selective_scan
