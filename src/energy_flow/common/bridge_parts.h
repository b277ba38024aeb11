// What the text bridge (C21) is made of: whole components, by what each calls its sizes, options and inputs there. The
// bridge's variants make them through the registry, as everybody does: what a part does is that component's alone.
#pragma once

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <memory>
#include <string>

#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow {

struct BridgePart {
  const char* component;
  const char* prefix;   // of sizes and inputs that other parts have by the same name
  std::uint32_t draws;  // added to its draw numbers

  const ComponentSpec& spec() const { return find_component(component).spec; }

  std::string size(const std::string& own) const {
    if (own == "batch") return "samples";
    const char* const several[] = {"layers", "heads", "head_width", "ff", "model"};
    return std::find(std::begin(several), std::end(several), own) != std::end(several) ? prefix + own : own;
  }
  std::string input(const std::string& own) const {
    const char* const shared[] = {"token", "length", "sample_key", "word_bytes", "word_offsets"};
    return std::find(std::begin(shared), std::end(shared), own) != std::end(shared) ? own : prefix + own;
  }
  std::string expression(const std::string& own) const {
    std::string text;
    for (std::size_t i = 0; i < own.size();) {
      std::size_t end = i;
      while (end < own.size() && (std::isalnum(static_cast<unsigned char>(own[end])) || own[end] == '_')) ++end;
      text += end > i ? size(own.substr(i, end - i)) : own.substr(i, 1);
      i = std::max(end, i + 1);
    }
    return text;
  }
  InputSpec renamed(InputSpec own) const {
    own.name = input(own.name);
    for (Expression& extent : own.shape) extent = Expression(expression(extent.text()));
    if (!own.per.empty()) own.per = size(own.per);
    if (!own.draw.fan.empty()) own.draw.fan = size(own.draw.fan);
    own.draw.number += draws;
    return own.without_gradient();
  }

  // The part's own setting within the bridge's, for so many samples.
  Setting setting(const Setting& bridge, std::int64_t samples) const {
    const Signature& signature = spec().signature;
    Setting own = bridge;
    own.input_case.sizes.clear(), own.input_case.options.clear();
    for (const SizeSpec& one : signature.sizes) {
      const std::string name = size(one.name);
      own.input_case.sizes[one.name] = name == "samples" ? samples : bridge.size(name);
    }
    for (const OptionSpec& one : signature.options)
      if (bridge.signature->find_option(one.name)) own.input_case.options[one.name] = bridge.option(one.name);
    return completed(signature, own);
  }

  // The part as that variant has it, of `count` samples from number `first` on. `more`: inputs that other parts make.
  std::unique_ptr<Runnable> make(Variant variant, Device path, const NamedTensors& inputs, const Setting& bridge,
                                 std::int64_t first, std::int64_t count, const NamedTensors& more = {}) const {
    const Setting own = setting(bridge, count);
    NamedTensors given;
    for (const InputSpec& one : inputs_of(*own.signature, own)) {
      const std::string name = input(one.name);
      if (more.contains(one.name))
        given.set(one.name, more[one.name]);
      else if (inputs.contains(name))
        given.set(one.name, one.batch_axis ? inputs[name].narrow(*one.batch_axis, first, count) : inputs[name]);
    }
    return find_component(component).make(variant, path, given, own);
  }
};

inline constexpr BridgePart kBridgeFlows{"energy_flow.flow_forward", "", 0};
inline constexpr BridgePart kBridgeEncoder{"energy_flow.text_encoder", "encoder_", 1000};
inline constexpr BridgePart kBridgeDecoder{"energy_flow.text_decoder", "decoder_", 2000};

// How many texts a step shows: of the first samples, on attempts that are due.
inline std::int64_t shown_texts(const Setting& s) {
  const auto interval = static_cast<std::int64_t>(s.option("decoder_step_interval"));
  const auto attempt = static_cast<std::int64_t>(s.option("attempt"));
  if (!s.on("text_bridge") || interval == 0 || attempt % interval != 0) return 0;
  return std::min(s.size("samples"), static_cast<std::int64_t>(s.option("decoder_max_batch")));
}

// What a variant has done in a run: forward passes and the samples in them, calls of encoder and decoder, and tokens of
// all texts that were decoded, shown or not.
enum BridgeWork : std::int64_t { kFlowForwards, kFlowSamples, kEncodes, kDecodes, kDecodedTokens, kBridgeWork };

// Of `results` the row `first` and those after it get what the decoder has found.
inline void show_texts(const NamedTensors& results, const NamedTensors& texts, std::int64_t first) {
  for (const auto& [name, value] : texts) {
    const std::string shown = name == "gap" ? name : "predicted_" + name;
    if (results.contains(shown)) results[shown].narrow(0, first, value.size(0)).copy_(value);
  }
}

// Nothing encoded, and no text shown: the results that a micro-step begins with, beside those of its flows.
inline NamedTensors no_texts(const Setting& s) {
  NamedTensors results;
  for (const OutputSpec& one : outputs_of(*s.signature, s)) {
    const auto options = at::TensorOptions(s.device.tensors()).dtype(scalar_type(one.element, s.dtype));
    results.set(one.name, at::zeros(extents(one.shape, s), options));
  }
  results["gap"].fill_(1);
  return results;
}

// By operators: on the CUDA path no host touches a tensor's memory.
inline void tell_work(const NamedTensors& results, BridgeWork column, std::int64_t count) {
  results["work"].select(0, column).fill_(count);
}

}  // namespace twinbench::energy_flow
