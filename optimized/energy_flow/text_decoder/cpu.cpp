// Optimized energy_flow.text_decoder on the CPU: all samples that go on take each step together, keys and values are
// kept, cross-attention is computed once, and every weight is streamed once a step.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/common/rows.h"
#include "kernels/energy_flow/text_decoder/math.h"
#include "optimized/common/activation_rows.h"
#include "optimized/common/packing.h"
#include "optimized/common/row_product.h"
#include "optimized/common/rows.h"
#include "src/common/forward_call.h"
#include "src/energy_flow/common/word_table.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

TWINBENCH_CPU_CLONES static void rms_rows(std::int64_t rows, std::int64_t width, const float* __restrict x,
                                          const float* __restrict gain, float* __restrict to, bool round) {
  for (std::int64_t row = 0; row < rows; ++row, x += width, to += width) {
    float partial[kernels::kSumLanes] = {};
    std::int64_t i = 0;
    for (; i + kernels::kSumLanes <= width; i += kernels::kSumLanes)
      for (int lane = 0; lane < kernels::kSumLanes; ++lane) partial[lane] += x[i + lane] * x[i + lane];
    for (int lane = 0; i + lane < width; ++lane) partial[lane] += x[i + lane] * x[i + lane];
    float squares = 0;
    for (const float one : partial) squares += one;
    const float inverse = inverse_rms(squares, width);
    for (std::int64_t j = 0; j < width; ++j) to[j] = x[j] * inverse * gain[j];
    if (round)
      for (std::int64_t j = 0; j < width; ++j) to[j] = kernels::round_to_bf16(to[j]);
  }
}

TWINBENCH_CPU_CLONES static void relu_all(float* __restrict x, std::int64_t count, bool round) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] < 0.0f ? 0.0f : x[i];  // NaN stays
  if (round)
    for (std::int64_t i = 0; i < count; ++i) x[i] = kernels::round_to_bf16(x[i]);
}

// A layer's bias and normalisation, without an activation.
TWINBENCH_CPU_CLONES static void normalised_rows(std::int64_t rows, std::int64_t width, const float* bias,
                                                 const float* gain, const float* shift, float* x, bool round) {
  for (std::int64_t row = 0; row < rows; ++row, x += width) {
    for (std::int64_t i = 0; i < width; ++i) x[i] += bias[i];
    const float mean = kernels::row_sum<float>(width, [=](std::int64_t i) { return x[i]; }) / static_cast<float>(width);
    const float squares = kernels::row_sum<float>(width, [=](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
    const float inverse = kernels::inverse_deviation(squares / static_cast<float>(width));
    for (std::int64_t i = 0; i < width; ++i) x[i] = kernels::scaled((x[i] - mean) * inverse, gain[i], shift[i]);
    if (round)
      for (std::int64_t i = 0; i < width; ++i) x[i] = kernels::round_to_bf16(x[i]);
  }
}

// One head of one sample: its query over the keys and values [positions] that lie `stride` apart. Scores are scratch.
TWINBENCH_CPU_CLONES static void attend(const float* __restrict query, const float* __restrict keys,
                                        const float* __restrict values, std::int64_t stride, std::int64_t positions,
                                        std::int64_t width, float scale, bool round, float* __restrict scores,
                                        float* __restrict mixed) {
  float top = -std::numeric_limits<float>::infinity();
  for (std::int64_t p = 0; p < positions; ++p) {
    const float* __restrict key = keys + p * stride;
    float partial[16] = {};
    std::int64_t i = 0;
    for (; i + 16 <= width; i += 16)
      for (int lane = 0; lane < 16; ++lane) partial[lane] += query[i + lane] * key[i + lane];
    for (int lane = 0; i + lane < width; ++lane) partial[lane] += query[i + lane] * key[i + lane];
    float sum = 0;
    for (const float one : partial) sum += one;
    scores[p] = sum * scale;
    top = scores[p] > top ? scores[p] : top;
  }
  float all = 0;
  for (std::int64_t p = 0; p < positions; ++p) scores[p] = kernels::exp(scores[p] - top);
  for (std::int64_t p = 0; p < positions; ++p) all += scores[p];
  for (std::int64_t p = 0; p < positions; ++p) scores[p] /= all;
  if (round)
    for (std::int64_t p = 0; p < positions; ++p) scores[p] = kernels::round_to_bf16(scores[p]);
  for (std::int64_t i = 0; i < width; ++i) mixed[i] = 0;
  for (std::int64_t p = 0; p < positions; ++p) {
    const float share = scores[p];
    const float* __restrict value = values + p * stride;
    for (std::int64_t i = 0; i < width; ++i) mixed[i] += share * value[i];
  }
  if (round)
    for (std::int64_t i = 0; i < width; ++i) mixed[i] = kernels::round_to_bf16(mixed[i]);
}

TWINBENCH_CPU_CLONES static bool all_finite(const float* values, std::int64_t count) {
  int beyond = 0;
  for (std::int64_t i = 0; i < count; ++i) beyond |= !(kernels::absolute(values[i]) < INFINITY);
  return beyond == 0;
}

TWINBENCH_CPU_CLONES static TopTwo top_two(const float* logits, std::int64_t count) {
  TopTwo two;
  for (std::int64_t i = 0; i < count; ++i)
    if (!(logits[i] <= two.second)) two = merged(two, {logits[i], -INFINITY, static_cast<std::int32_t>(i)});
  return two;
}

class CpuDecoder final : public Runnable {
 public:
  CpuDecoder(const NamedTensors& inputs, const Setting& setting)
      : round_(rounds_operands(setting)),
        batch_(setting.size("batch")),
        cells_(setting.size("cells")),
        heads_(setting.size("heads")),
        width_(setting.size("head_width")),
        model_(heads_ * width_),
        ff_(setting.size("ff")),
        vocabulary_(setting.size("vocabulary")),
        tokens_(setting.size("tokens")),
        words_(inputs, setting.size("longest_word")),
        inputs_(inputs),
        results_(empty_results(setting)) {
    surface_ = given<float>(inputs_, "surface");
    embedding_ = given<float>(inputs_, "embedding");
    logit_weight_ = operand("embedding");
    final_gain_ = given<float>(inputs_, "final_gain");
    for (int i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i + 1);
      adapter_[i] = {operand("adapter_weight_" + number), given<float>(inputs_, "adapter_bias_" + number),
                     given<float>(inputs_, "adapter_gain_" + number), given<float>(inputs_, "adapter_shift_" + number)};
    }
    middle_ = inputs["adapter_weight_1"].size(0);
    for (std::int64_t layer = 0; layer < setting.size("layers"); ++layer) {
      const auto of = [&](const char* name) { return name + ("_" + std::to_string(layer)); };
      layers_.push_back({.self_gain = given<float>(inputs_, of("self_gain")),
                         .self_qkv = operand(of("self_qkv")),
                         .self_out = operand(of("self_out")),
                         .cross_value = operand(of("cross_value")),
                         .cross_out = operand(of("cross_out")),
                         .ff_gain = given<float>(inputs_, of("ff_gain")),
                         .ff_in = operand(of("ff_in")),
                         .ff_out = operand(of("ff_out")),
                         .cache = room(batch_ * tokens_ * 2 * model_),
                         .crossing = room(batch_ * model_)});
    }
    positions_ = room(tokens_ * model_);
    for (std::int64_t i = 0; i < tokens_ * model_; ++i) positions_[i] = encoding(i / model_, i % model_, model_);
    x_ = room(batch_ * model_);
    normal_ = room(batch_ * std::max(model_, cells_));
    part_ = room(batch_ * std::max(3 * model_, std::max(ff_, middle_)));
    hidden_ = room(batch_ * std::max(ff_, middle_));
    scores_ = room(tokens_);
    logits_ = room(batch_ * vocabulary_);
    live_.reserve(static_cast<std::size_t>(batch_));
  }

  void run() override {
    if (batch_ > 0) announce_forward_call("energy_flow.text_decoder");
    clear();
    live_.clear();
    for (std::int64_t b = 0; b < batch_; ++b)
      if (all_finite(surface_ + b * cells_, cells_)) live_.push_back(b);
    if (!live_.empty()) {
      cross();
      std::fill_n(last_.begin(), live_.size(), kPadToken);
      for (std::int64_t t = 0; t < tokens_ && !live_.empty(); ++t) step(t);
    }
    for (std::int64_t b = 0; b < batch_; ++b) join(b);
  }

  NamedTensors outputs() override { return results_; }

 private:
  struct AdapterLayer {
    const float *weight, *bias, *gain, *shift;
  };
  struct Layer {
    const float *self_gain, *self_qkv, *self_out, *cross_value, *cross_out, *ff_gain, *ff_in, *ff_out;
    float* cache;     // keys and values [batch, tokens, 2, model], operands
    float* crossing;  // [batch, model]
  };

  const float* operand(const std::string& name) {
    kept_.push_back(round_ ? inputs_[name].to(at::kBFloat16).to(at::kFloat) : inputs_[name].contiguous());
    return kept_.back().const_data_ptr<float>();
  }
  float* room(std::int64_t floats) {
    kept_.push_back(at::empty({floats}, at::kFloat));
    return data<float>(kept_.back());
  }
  template <class T>
  T* result(const char* name) {
    return data<T>(results_[name]);
  }
  std::int64_t count() const { return static_cast<std::int64_t>(live_.size()); }

  void clear() {
    std::fill_n(result<std::int64_t>("token"), batch_ * tokens_, std::int64_t{kPadToken});
    std::fill_n(result<std::int32_t>("length"), batch_, 0);
    std::fill_n(result<float>("logit"), batch_ * tokens_, 0.0f);
    std::fill_n(result<float>("gap"), batch_, 1.0f);
    last_.resize(static_cast<std::size_t>(batch_));
  }

  // out [rows, columns] = x [rows, inner] weight^T
  void multiply(const float* x, const float* weight, std::int64_t inner, std::int64_t columns, float* out) const {
    constexpr std::int64_t kWork = 1 << 19;  // multiply-adds that pay for waking a thread
    const std::int64_t rows = count();
    at::parallel_for(0, (columns + 3) / 4, std::max<std::int64_t>(1, kWork / (4 * rows * inner)),
                     [&](std::int64_t begin, std::int64_t end) {
                       multiply_transposed(rows, x, weight, inner, columns, 4 * begin, std::min(columns, 4 * end), out);
                     });
  }

  // Adapter, and what each layer's cross-attention adds, whatever the query is.
  void cross() {
    for (std::int64_t i = 0; i < count(); ++i) {
      const float* const surface = surface_ + live_[static_cast<std::size_t>(i)] * cells_;
      std::copy_n(surface, cells_, normal_ + i * cells_);
    }
    if (round_) round_in_place(normal_, count() * cells_);
    multiply(normal_, adapter_[0].weight, cells_, middle_, part_);
    const kernels::ActivationLayer<float> first{.rows = count(),
                                                .width = middle_,
                                                .bias = adapter_[0].bias,
                                                .gain = adapter_[0].gain,
                                                .shift = adapter_[0].shift,
                                                .product = part_,
                                                .hidden = {.plain = hidden_}};
    activate_rows(first, 0, count(), round_);
    multiply(hidden_, adapter_[1].weight, middle_, model_, x_);
    normalised_rows(count(), model_, adapter_[1].bias, adapter_[1].gain, adapter_[1].shift, x_, round_);
    for (const Layer& layer : layers_) {
      multiply(x_, layer.cross_value, model_, model_, normal_);
      if (round_) round_in_place(normal_, count() * model_);
      multiply(normal_, layer.cross_out, model_, model_, part_);
      for (std::int64_t i = 0; i < count(); ++i)
        std::copy_n(part_ + i * model_, model_, layer.crossing + live_[static_cast<std::size_t>(i)] * model_);
    }
  }

  void step(std::int64_t t) {
    for (std::int64_t i = 0; i < count(); ++i) {
      announce_forward_call("energy_flow.decoder_position");
      const float* const word = embedding_ + last_[static_cast<std::size_t>(i)] * model_;
      for (std::int64_t j = 0; j < model_; ++j) x_[i * model_ + j] = word[j] + positions_[t * model_ + j];
    }
    for (const Layer& layer : layers_) {
      rms_rows(count(), model_, x_, layer.self_gain, normal_, round_);
      multiply(normal_, layer.self_qkv, model_, 3 * model_, part_);
      if (round_) round_in_place(part_, count() * 3 * model_);
      for (std::int64_t i = 0; i < count(); ++i) attend_sample(layer, i, t);
      multiply(normal_, layer.self_out, model_, model_, part_);
      add_row(part_, x_, count() * model_);
      for (std::int64_t i = 0; i < count(); ++i)
        add_row(layer.crossing + live_[static_cast<std::size_t>(i)] * model_, x_ + i * model_, model_);
      rms_rows(count(), model_, x_, layer.ff_gain, normal_, round_);
      multiply(normal_, layer.ff_in, model_, ff_, hidden_);
      relu_all(hidden_, count() * ff_, round_);
      multiply(hidden_, layer.ff_out, ff_, model_, part_);
      add_row(part_, x_, count() * model_);
    }
    rms_rows(count(), model_, x_, final_gain_, normal_, round_);
    multiply(normal_, logit_weight_, model_, vocabulary_, logits_);
    pick(t);
  }

  // Row i of part_: query, key and value of position t. Its heads' mixtures go to normal_.
  void attend_sample(const Layer& layer, std::int64_t i, std::int64_t t) {
    float* const cache = layer.cache + live_[static_cast<std::size_t>(i)] * tokens_ * 2 * model_;
    const float* const row = part_ + i * 3 * model_;
    std::copy_n(row + model_, 2 * model_, cache + t * 2 * model_);
    const float scale = 1.0f / std::sqrt(static_cast<float>(width_));
    for (std::int64_t head = 0; head < heads_; ++head) {
      const std::int64_t at = head * width_;
      attend(row + at, cache + at, cache + model_ + at, 2 * model_, t + 1, width_, scale, round_, scores_,
             normal_ + i * model_ + at);
    }
  }

  // The likeliest ids; samples that end are taken out of live_.
  void pick(std::int64_t t) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(model_));
    std::size_t left = 0;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const std::int64_t b = live_[i];
      TopTwo two = top_two(logits_ + static_cast<std::int64_t>(i) * vocabulary_, vocabulary_);
      two.best *= scale, two.second *= scale;
      result<std::int64_t>("token")[b * tokens_ + t] = two.id;
      result<float>("logit")[b * tokens_ + t] = two.best;
      float& gap = result<float>("gap")[b];
      if (!round_) gap = std::min(gap, gap_of(two));
      ++result<std::int32_t>("length")[b];
      if (two.id == kEndToken) continue;
      live_[left] = b;
      last_[left++] = two.id;
    }
    live_.resize(left);
  }

  void join(std::int64_t b) {
    const std::int64_t room = results_["text"].size(1);
    auto* const text = result<std::uint8_t>("text") + b * room;
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < result<std::int32_t>("length")[b]; ++i) {
      const std::int64_t id = result<std::int64_t>("token")[b * tokens_ + i];
      if (id < kFirstWord) continue;
      if (at > 0) text[at++] = ' ';
      const std::string_view word = words_.word(id);
      if (!word.empty()) std::memcpy(text + at, word.data(), word.size());
      at += static_cast<std::int64_t>(word.size());
    }
    std::fill(text + at, text + room, std::uint8_t{0});
    result<std::int32_t>("text_length")[b] = static_cast<std::int32_t>(at);
  }

  const bool round_;
  const std::int64_t batch_, cells_, heads_, width_, model_, ff_, vocabulary_, tokens_;
  const WordTable words_;
  NamedTensors inputs_, results_;
  std::vector<at::Tensor> kept_;  // what the pointers point into
  const float *surface_, *embedding_, *logit_weight_, *final_gain_;
  AdapterLayer adapter_[2];
  std::int64_t middle_;
  std::vector<Layer> layers_;
  // Rows of the samples that go on, live_ says whose: [count, ...].
  float *positions_, *x_, *normal_, *part_, *hidden_, *scores_, *logits_;
  std::vector<std::int64_t> live_;
  std::vector<std::int64_t> last_;  // their newest tokens
};

}  // namespace

std::unique_ptr<Runnable> make_cpu(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<CpuDecoder>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_decoder
