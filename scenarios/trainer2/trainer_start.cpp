// Normals by the sum of four uniforms, token ids by remainder: nothing that platforms round differently.
#include "scenarios/trainer2/trainer_start.h"

#include <ATen/ATen.h>

#include <cmath>

#include "src/common/philox.h"

namespace twinbench::trainer2 {
namespace {

// Places in the generator, as the specification numbers them.
enum class Stream : std::uint32_t {
  kEmbedding = 1,
  kIntoHidden = 2,
  kFromField = 3,
  kFromHidden = 4,
  kFieldReal = 5,
  kFieldImaginary = 6,
  kTokens = 7,
};

PhiloxWords words(std::uint64_t seed, Stream stream, std::int64_t i) {
  const auto index = static_cast<std::uint64_t>(i);
  return philox(seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                static_cast<std::uint32_t>(stream), 0);
}

// Four uniforms have the variance 1/3, so their sum less its mean is multiplied with the root of three.
at::Tensor normals(std::uint64_t seed, Stream stream, at::IntArrayRef shape, double scale) {
  const at::Tensor values = at::empty(shape, at::kFloat);
  auto* const out = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    double sum = 0;
    for (const std::uint32_t word : words(seed, stream, i).w) sum += static_cast<double>(word >> 8);
    out[i] = static_cast<float>(scale * std::sqrt(3.0) * (sum * 0x1p-24 - 2));
  }
  return values;
}

}  // namespace

TrainerStart TrainerStart::placed(Dtype dtype, c10::Device device) const {
  const auto moved = [&](const at::Tensor& tensor) {
    auto type = tensor.scalar_type();
    if (dtype == Dtype::kFp64 && tensor.is_floating_point()) type = at::kDouble;
    if (dtype == Dtype::kFp64 && tensor.is_complex()) type = at::kComplexDouble;
    return tensor.to(tensor.options().dtype(type).device(device), /*non_blocking=*/false, /*copy=*/true);
  };
  return {moved(embedding), moved(into_hidden), moved(from_field), moved(from_hidden), moved(field), moved(ids)};
}

TrainerStart trainer_start(const ScenarioConfig& config) {
  const auto size = [&](const char* name) { return config.sizes.at(name); };
  const auto root = [](std::int64_t of) { return 1 / std::sqrt(static_cast<double>(of)); };
  const auto seed = config.seed;
  const std::int64_t width = size("width"), hidden = size("hidden"), dimension = size("dimension");
  const std::vector<std::int64_t> grid = {size("grid_width"), size("grid_height"), dimension, dimension};
  TrainerStart start;
  start.embedding = normals(seed, Stream::kEmbedding, {size("vocabulary"), width}, 1);
  start.into_hidden = normals(seed, Stream::kIntoHidden, {width, hidden}, root(width));
  start.from_field = normals(seed, Stream::kFromField, {dimension, hidden}, root(dimension));
  start.from_hidden = normals(seed, Stream::kFromHidden, {hidden, width}, root(hidden));
  start.field = at::complex(normals(seed, Stream::kFieldReal, grid, std::sqrt(0.5)),
                            normals(seed, Stream::kFieldImaginary, grid, std::sqrt(0.5)));
  start.ids = at::empty({size("sequences"), size("tokens")}, at::kLong);
  auto* const id = start.ids.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < start.ids.numel(); ++i)
    id[i] = words(seed, Stream::kTokens, i).w[0] % size("vocabulary");
  return start;
}

}  // namespace twinbench::trainer2
