// Philox draws and toy weights.
#include "src/draws.h"

#include <ATen/ops/empty.h>

#include <array>
#include <cmath>

#include "src/common/error.h"
#include "src/common/philox.h"

namespace twinbench::draws {
namespace {

// Fills a fresh tensor with value(i) of its flat index.
template <class Value>
at::Tensor filled(at::IntArrayRef shape, Value value) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  float* data = tensor.mutable_data_ptr<float>();
  const std::int64_t count = tensor.numel();
  for (std::int64_t i = 0; i < count; ++i) data[i] = value(i);
  return tensor;
}

PhiloxWords words_at(std::uint64_t seed, PhiloxStream stream, std::uint32_t number, std::int64_t i) {
  return philox(seed, static_cast<std::uint32_t>(i), number, 0, philox_tag(stream, 0));
}

// Every fourth adversarial value, in turn; the rest are normal.
constexpr std::array<float, 12> kAwkward = {0.0f,  -0.0f,       1e-40f,  1.0f, -1.0f,        1e3f,
                                            -1e3f, 1.00390625f, -1e-30f, 0.5f, 1.001953125f, -1.005859375f};

}  // namespace

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed, std::uint32_t number, double standard_deviation) {
  const float scale = static_cast<float>(standard_deviation);
  return filled(shape, [=](std::int64_t i) {
    const PhiloxWords words = words_at(seed, PhiloxStream::kWeights, number, i);
    return scale * philox_normal_pair(words.w[0], words.w[1]).cosine;
  });
}

at::Tensor uniform(at::IntArrayRef shape, std::uint64_t seed, std::uint32_t number, double low, double high) {
  const float start = static_cast<float>(low), width = static_cast<float>(high - low);
  return filled(shape, [=](std::int64_t i) {
    return start + width * philox_uniform(words_at(seed, PhiloxStream::kWeights, number, i).w[0]);
  });
}

at::Tensor fan_in_uniform(at::IntArrayRef shape, std::int64_t fan_in, std::uint64_t seed, std::uint32_t number) {
  const double limit = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return uniform(shape, seed, number, -limit, limit);
}

at::Tensor xavier_uniform(std::int64_t out, std::int64_t in, std::uint64_t seed, std::uint32_t number, double gain) {
  const double limit = gain * std::sqrt(6.0 / static_cast<double>(in + out));
  return uniform({out, in}, seed, number, -limit, limit);
}

at::Tensor drawn(const std::string& distribution, at::IntArrayRef shape, std::uint64_t seed, std::uint32_t number,
                 double scale) {
  const float s = static_cast<float>(scale);
  const auto words = [=](std::int64_t i) { return words_at(seed, PhiloxStream::kSyntheticData, number, i); };
  const auto normal_at = [=](std::int64_t i) {
    const PhiloxWords w = words(i);
    return philox_normal_pair(w.w[0], w.w[1]).cosine;
  };
  if (distribution == "normal") return filled(shape, [=](std::int64_t i) { return s * normal_at(i); });
  if (distribution == "uniform")
    return filled(shape, [=](std::int64_t i) { return s * (2.0f * philox_uniform(words(i).w[0]) - 1.0f); });
  if (distribution == "zeros") return filled(shape, [](std::int64_t) { return 0.0f; });
  if (distribution == "heavy_tail")
    return filled(shape, [=](std::int64_t i) {
      const PhiloxWords w = words(i);
      const float magnitude = std::exp(1.5f * philox_normal_pair(w.w[2], w.w[3]).cosine);
      return s * magnitude * philox_normal_pair(w.w[0], w.w[1]).cosine;
    });
  if (distribution == "adversarial")
    return filled(shape, [=](std::int64_t i) {
      const bool awkward = i % 4 == 0;
      return s * (awkward ? kAwkward[static_cast<std::size_t>(i / 4) % kAwkward.size()] : normal_at(i));
    });
  if (distribution == "some_zeros")
    return filled(shape, [=](std::int64_t i) { return i % 3 != 0 ? s * normal_at(i) : i % 2 != 0 ? -0.0f : 0.0f; });
  throw Error(ErrorKind::kUnknownName, "distribution", distribution,
              "use normal, uniform, zeros, some_zeros, heavy_tail or adversarial");
}

std::vector<std::string> distributions() {
  return {"normal", "uniform", "zeros", "some_zeros", "heavy_tail", "adversarial"};
}

at::Tensor toy_weight(std::int64_t rows, std::int64_t columns, std::int64_t k) {
  return filled({rows, columns}, [=](std::int64_t flat) {
    const std::int64_t i = flat / columns, j = flat % columns;
    return static_cast<float>(static_cast<double>((7 * i + 3 * j + k) % 11 - 5) / 10.0);
  });
}

at::Tensor toy_bias(std::int64_t rows, std::int64_t k) {
  return filled({rows},
                [=](std::int64_t i) { return static_cast<float>(static_cast<double>((5 * i + k) % 7 - 3) / 20.0); });
}

at::Tensor literal(at::IntArrayRef shape, std::initializer_list<double> values) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  if (tensor.numel() != static_cast<std::int64_t>(values.size()))
    throw Error(ErrorKind::kBadShape, "literal", std::to_string(values.size()) + " values",
                "give as many values as the shape holds");
  float* data = tensor.mutable_data_ptr<float>();
  for (const double value : values) *data++ = static_cast<float>(value);
  return tensor;
}

}  // namespace twinbench::draws
