// Optimized energy_flow.text_decoder on CUDA: all samples together, a token as one recorded graph, ended rows marked on
// the device; the host looks at a flag every 16 tokens and reads nothing.
#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

#include "kernels/common/captured_graph.h"
#include "kernels/energy_flow/text_decoder/arguments.h"
#include "kernels/energy_flow/text_decoder/math.h"
#include "optimized/common/cuda.h"
#include "optimized/common/packing.h"
#include "optimized/energy_flow/common/stop_flag.h"
#include "src/common/forward_call.h"
#include "src/energy_flow/common/word_table.h"

namespace twinbench::energy_flow::text_decoder {
namespace {

static_assert(kPadId == kPadToken && kEndId == kEndToken && kFirstWordId == kFirstWord, "one set of special ids");
constexpr std::int64_t kTokensALook = 16;

class CudaDecoder final : public Runnable {
 public:
  CudaDecoder(const NamedTensors& inputs, const Setting& setting)
      : round_(rounds_operands(setting)),
        rows_(setting.size("batch")),
        model_(setting.size("model")),
        tokens_(setting.size("tokens")),
        layers_(setting.size("layers")),
        inputs_(inputs),
        results_(empty_results(setting)),
        options_(at::TensorOptions(setting.device).dtype(at::kFloat)) {
    const WordTable checked(inputs, setting.size("longest_word"));
    prepare_decode(setting);
    prepare_adapter(setting);
    prepare_steps(setting);
    if (rows_ > 0) step_ = kernels::captured_graph("decoder step", [this](kernels::Stream on) { issue_step(on); });
  }

  void run() override {
    if (rows_ == 0) return;
    announce_forward_call("energy_flow.text_decoder");
    decode_.pass = flag_.next_pass();
    launch_start(decode_, stream());
    for (const auto& layer : adapter_) launch_adapter_layer(layer, stream());
    launch_normalise(memory_, stream());
    launch_product(cross_value_, stream());
    launch_product(cross_out_, stream());
    for (std::int64_t t = 0; t < tokens_; ++t) {
      if (t > 0 && t % kTokensALook == 0 && flag_.raised()) break;
      step_(stream());
    }
    launch_join(decode_, stream());
  }

  NamedTensors outputs() override { return results_; }

 private:
  struct Layer {
    ProductArguments self_qkv, self_out, ff_in, ff_out;
    AttendArguments attend;
  };

  const float* floats(const std::string& name) { return given<float>(inputs_, name); }
  at::Tensor kept(const at::Tensor& tensor) {
    kept_.push_back(tensor);
    return tensor;
  }
  // Zeros: where kernels are counted by a sample of their blocks, the others leave what is here.
  float* room(at::IntArrayRef shape) { return data<float>(kept(at::zeros(shape, options_))); }
  std::int32_t* integers(std::int64_t count) {
    return data<std::int32_t>(kept(at::zeros({count}, options_.dtype(at::kInt))));
  }
  // The weight, or all layers' of it, as the products take them.
  template <class Arguments>
  void set_weight(Arguments& a, const at::Tensor& weight, const Setting& setting) {
    const at::Tensor operand = kept(operand_of(weight, setting, round_ ? at::kBFloat16 : at::kFloat));
    if (round_)
      a.weight_bf16 = data<std::uint16_t>(operand);
    else
      a.weight = operand.const_data_ptr<float>();
  }

  void prepare_decode(const Setting& setting) {
    const std::int64_t pieces = product_pieces(setting.size("vocabulary"));
    at::Tensor positions = at::empty({tokens_, model_}, at::kFloat);
    for (std::int64_t i = 0; i < positions.numel(); ++i)
      positions.mutable_data_ptr<float>()[i] = encoding(i / model_, i % model_, model_);
    decode_ = {.rows = rows_,
               .cells = setting.size("cells"),
               .heads = setting.size("heads"),
               .width = setting.size("head_width"),
               .tokens = tokens_,
               .text_bytes = setting.size("text_bytes"),
               .pieces = pieces,
               .surface = floats("surface"),
               .embedding = floats("embedding"),
               .positions = kept(positions.to(options_)).const_data_ptr<float>(),
               .x = room({rows_, model_}),
               .round = round_,
               .token = data<std::int64_t>(results_["token"]),
               .logit = data<float>(results_["logit"]),
               .gap = data<float>(results_["gap"]),
               .length = data<std::int32_t>(results_["length"]),
               .text_length = data<std::int32_t>(results_["text_length"]),
               .text = data<std::uint8_t>(results_["text"]),
               .word_bytes = given<std::uint8_t>(inputs_, "word_bytes"),
               .word_offsets = given<std::int64_t>(inputs_, "word_offsets"),
               .done = integers(rows_),
               .step = integers(1),
               .step_to_pick = integers(1),
               .finished = integers(1),
               .pass_at_hand = integers(1),
               .started = reinterpret_cast<unsigned*>(integers(1)),
               .all_finished = flag_.where()};
    logits_ = {.rows = rows_,
               .inner = model_,
               .columns = setting.size("vocabulary"),
               .x = decode_.x,
               .gain = floats("final_gain"),
               .done = decode_.done,
               .step = decode_.step,
               .best = room({rows_, pieces}),
               .second = room({rows_, pieces}),
               .id = integers(rows_ * pieces),
               .scale = 1.0f / std::sqrt(static_cast<float>(model_)),
               .step_to_pick = decode_.step_to_pick};
    set_weight(logits_, inputs_["embedding"], setting);
    decode_.best = logits_.best;
    decode_.second = logits_.second;
    decode_.id = logits_.id;
  }

  void prepare_adapter(const Setting& setting) {
    for (int i = 0; i < 2; ++i) {
      const std::string number = std::to_string(i + 1);
      const at::Tensor& weight = inputs_["adapter_weight_" + number];
      adapter_[i] = {.rows = rows_,
                     .inner = weight.size(1),
                     .columns = weight.size(0),
                     .x = i == 0 ? decode_.surface : adapter_[0].out,
                     .bias = floats("adapter_bias_" + number),
                     .out = room({rows_, weight.size(0)})};
      set_weight(adapter_[i], weight, setting);
    }
    adapter_[0].out_moments = room({2, rows_, output_collector::pieces_of(adapter_[0].columns)});
    adapter_[1].gain = floats("adapter_gain_1");
    adapter_[1].shift = floats("adapter_shift_1");
    adapter_[1].moments = adapter_[0].out_moments;
    memory_ = {.rows = rows_,
               .width = model_,
               .x = adapter_[1].out,
               .gain = floats("adapter_gain_2"),
               .shift = floats("adapter_shift_2")};
    const auto all = [&](const char* name) {
      std::vector<at::Tensor> weights;
      for (std::int64_t layer = 0; layer < layers_; ++layer)
        weights.push_back(inputs_[name + ("_" + std::to_string(layer))]);
      return at::stack(weights);
    };
    cross_value_ = {.rows = rows_,
                    .inner = model_,
                    .columns = model_,
                    .groups = layers_,
                    .x = memory_.x,
                    .out = room({layers_, rows_, model_})};
    set_weight(cross_value_, all("cross_value"), setting);
    cross_out_ = cross_value_;
    cross_out_.x = cross_value_.out;
    cross_out_.x_group = rows_ * model_;
    cross_out_.out = room({layers_, rows_, model_});
    set_weight(cross_out_, all("cross_out"), setting);
  }

  void prepare_steps(const Setting& setting) {
    const std::int64_t ff = setting.size("ff"), heads = decode_.heads;
    float* const mixed = room({rows_, model_});
    float* const hidden = room({rows_, ff});
    for (std::int64_t i = 0; i < layers_; ++i) {
      const auto of = [&](const char* name) { return name + ("_" + std::to_string(i)); };
      const auto product = [&](const char* weight, std::int64_t inner, std::int64_t columns, const float* x,
                               float* out) {
        ProductArguments a{.rows = rows_, .inner = inner, .columns = columns, .x = x, .out = out};
        a.done = decode_.done;
        a.step = decode_.step;
        set_weight(a, inputs_[of(weight)], setting);
        return a;
      };
      float* const cache = room({tokens_, rows_, 3, model_});
      Layer layer{.self_qkv = product("self_qkv", model_, 3 * model_, decode_.x, cache),
                  .self_out = product("self_out", model_, model_, mixed, decode_.x),
                  .ff_in = product("ff_in", model_, ff, decode_.x, hidden),
                  .ff_out = product("ff_out", ff, model_, hidden, decode_.x),
                  .attend = {.rows = rows_,
                             .heads = heads,
                             .width = decode_.width,
                             .tokens = tokens_,
                             .cache = cache,
                             .mixed = mixed,
                             .scale = 1.0f / std::sqrt(static_cast<float>(decode_.width)),
                             .round = round_,
                             .done = decode_.done,
                             .step = decode_.step}};
      layer.self_qkv.gain = floats(of("self_gain"));
      layer.self_qkv.out_step = rows_ * 3 * model_;
      layer.self_out.add = cross_out_.out + i * rows_ * model_;
      layer.ff_in.gain = floats(of("ff_gain"));
      layer.ff_in.relu = true;
      layer.self_out.accumulate = layer.ff_out.accumulate = true;
      steps_.push_back(layer);
    }
  }

  void issue_step(kernels::Stream on) const {
    for (const Layer& layer : steps_) {
      launch_product(layer.self_qkv, on);
      launch_attend(layer.attend, on);
      launch_product(layer.self_out, on);
      launch_product(layer.ff_in, on);
      launch_product(layer.ff_out, on);
    }
    launch_logits(logits_, on);
    launch_pick(decode_, on);
  }

  const bool round_;
  const std::int64_t rows_, model_, tokens_, layers_;
  NamedTensors inputs_, results_;
  const at::TensorOptions options_;
  std::vector<at::Tensor> kept_;  // what the arguments point into
  StopFlag flag_;
  DecodeArguments decode_;
  output_collector::LayerArguments adapter_[2];
  NormaliseArguments memory_;
  ProductArguments cross_value_, cross_out_, logits_;
  std::vector<Layer> steps_;
  std::function<void(kernels::Stream)> step_;  // a token of every row that goes on
};

}  // namespace

std::unique_ptr<Runnable> make_cuda(const NamedTensors& inputs, const Setting& setting) {
  return make_on_device<CudaDecoder>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_decoder
