// energy_flow.energy_carrier, library: all flows at once. In fp32 the GRU of LibTorch, cuDNN's on a card with weights
// flattened at set-up; in bf16 products of bf16 operands and the fused cell, as no GRU of it keeps the state in fp32.
#include <ATen/ATen.h>

#include <vector>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::energy_carrier {
namespace {

constexpr double kGuardLimit = 10.0;
constexpr std::int64_t kGruMode = 3;  // of LibTorch's cuDNN wrapper

at::Tensor guarded(const at::Tensor& values) { return at::nan_to_num(values, 0.0).clamp(-kGuardLimit, kGuardLimit); }

// cuDNN's products in tf32, as LibTorch has it from the start, only where that is the mode.
class CudnnTf32 {
 public:
  explicit CudnnTf32(bool allowed) { at::globalContext().setAllowTF32CuDNN(allowed); }
  ~CudnnTf32() { at::globalContext().setAllowTF32CuDNN(before_); }
  CudnnTf32(const CudnnTf32&) = delete;
  CudnnTf32& operator=(const CudnnTf32&) = delete;

 private:
  const bool before_ = at::globalContext().allowTF32CuDNN();
};

class LibraryCarrier final : public TapeBaseline {
 public:
  LibraryCarrier(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting, Way::kLibrary),
        layers_(setting.size("layers")),
        on_card_(setting.device.is_cuda()),
        whole_(!round_ && on_card_ && setting.size("flows") > 0) {
    if (whole_) flatten();
    make_leaves();
  }

  void run() override {
    const CudnnTf32 only_if(setting_.dtype == Dtype::kTf32);
    TapeBaseline::run();
  }

 private:
  void compute() override {
    const at::Tensor raw = at::cat({inputs_["features"], inputs_["energy"].unsqueeze(1)}, 1);
    const at::Tensor& hidden = inputs_["hidden"];
    if (!backward_)
      results_.set("guard_hits", at::isnan(raw).sum(1).add_(at::isnan(hidden).sum(at::IntArrayRef{0, 2})).to(at::kInt));
    const at::Tensor x = guarded(raw), h = guarded(hidden);
    const at::Tensor next = guarded(whole_ ? gru(x, h) : layer_by_layer(x, h));
    result("output", next.select(0, layers_ - 1));
    result("next_hidden", next);
  }

  // One step of the whole recurrent network: [layers, flows, hidden].
  at::Tensor gru(const at::Tensor& x, const at::Tensor& h) const {
    return std::get<1>(at::gru(x.unsqueeze(0), h, parameters(), /*has_biases=*/true, layers_, /*dropout_p=*/0.0,
                               /*train=*/backward_, /*bidirectional=*/false, /*batch_first=*/false));
  }

  at::Tensor layer_by_layer(at::Tensor x, const at::Tensor& h) const {
    std::vector<at::Tensor> next;
    for (std::int64_t l = 0; l < layers_; ++l) next.push_back(x = cell(x, h.select(0, l), std::to_string(l)));
    return at::stack(next);
  }

  at::Tensor cell(const at::Tensor& x, const at::Tensor& h, const std::string& layer) const {
    const std::string input = "weight_input_" + layer, hidden = "weight_hidden_" + layer;
    const at::Tensor &bias_input = inputs_["bias_input_" + layer], &bias_hidden = inputs_["bias_hidden_" + layer];
    if (!round_) return at::gru_cell(x, h, inputs_[input], inputs_[hidden], bias_input, bias_hidden);
    if (on_card_)
      return std::get<0>(at::_thnn_fused_gru_cell(product(x, input), product(h, hidden), h, bias_input, bias_hidden));
    const auto from_input = linear(x, input, "bias_input_" + layer).chunk(3, 1);
    const auto from_hidden = linear(h, hidden, "bias_hidden_" + layer).chunk(3, 1);
    const at::Tensor reset = at::sigmoid(from_hidden[0] + from_input[0]);
    const at::Tensor update = at::sigmoid(from_hidden[1] + from_input[1]);
    const at::Tensor candidate = at::tanh(at::addcmul(from_input[2], reset, from_hidden[2]));
    return at::addcmul(candidate, update, h - candidate);
  }

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (std::int64_t l = 0; l < layers_; ++l)
      for (const char* name : {"weight_input_", "weight_hidden_", "bias_input_", "bias_hidden_"})
        all.push_back(inputs_[name + std::to_string(l)]);
    return all;
  }

  // The parameters become parts of one buffer in cuDNN's order: else it would copy them there in every call.
  void flatten() {
    for (std::int64_t l = 0; l < layers_; ++l)
      for (const char* name : {"weight_input_", "weight_hidden_", "bias_input_", "bias_hidden_"}) {
        const std::string parameter = name + std::to_string(l);
        inputs_.set(parameter, inputs_[parameter].clone(at::MemoryFormat::Contiguous));
      }
    at::_cudnn_rnn_flatten_weight(parameters(), /*weight_stride0=*/4, inputs_["features"].size(1) + 1, kGruMode,
                                  setting_.size("hidden"), /*proj_size=*/0, layers_, /*batch_first=*/false,
                                  /*bidirectional=*/false);
  }

  const std::int64_t layers_;
  const bool on_card_, whole_;
};

}  // namespace

std::unique_ptr<Runnable> make_library(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<LibraryCarrier>(inputs, setting);
}

}  // namespace twinbench::energy_flow::energy_carrier
