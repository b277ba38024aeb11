// Baseline of dataset_file: the whole file in one buffer, then row by row a fresh tensor, two tests and two host reads.
#include <ATen/ATen.h>
#include <zlib.h>

#include <fstream>
#include <iterator>

#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::dataset_file {
namespace {

// Field positions as the specification tabulates them; nothing of the reader in src/formats is used.
constexpr std::size_t kRows = 8, kWidth = 16, kOffsets = 24, kFileSize = 56, kChecksums = 68;
constexpr double kSmallestNorm = 0.01, kLargestNorm = 100.0;

template <typename T>
T field(const std::string& file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof(T));
  return value;
}

class DatasetFileBaseline : public Runnable {
 public:
  explicit DatasetFileBaseline(const NamedTensors& inputs) : source_(inputs, false) {}

  void run() override {
    rows_[0].clear();
    rows_[1].clear();
    texts_.clear();
    std::ifstream stream(source_.path(), std::ios::binary);
    const std::string file{std::istreambuf_iterator<char>(stream), {}};
    if (file.size() < 128 || field<std::uint64_t>(file, kFileSize) != file.size()) {
      throw Error(ErrorKind::kTruncated, "file size", std::to_string(file.size()), "the header says another size");
    }
    const auto rows = static_cast<std::int64_t>(field<std::uint64_t>(file, kRows));
    width_ = field<std::uint32_t>(file, kWidth);
    const std::uint64_t row_bytes = static_cast<std::uint64_t>(width_) * sizeof(float);
    const std::uint64_t lengths[] = {rows * row_bytes, rows * row_bytes, (2 * rows + 1) * sizeof(std::uint64_t),
                                     file.size() - offset(file, 3)};
    for (std::size_t section = 0; section < 4; ++section) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(file.data()) + offset(file, section);
      if (::crc32_z(0, bytes, lengths[section]) != field<std::uint32_t>(file, kChecksums + 4 * section)) {
        throw Error(ErrorKind::kCorrupt, "section " + std::to_string(section), "checksum mismatch",
                    "copy the file again");
      }
    }
    valid_.assign(static_cast<std::size_t>((rows + 7) / 8), 0);
    dropped_ = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      bool fit = true;
      for (std::size_t side = 0; side < 2; ++side) {
        at::Tensor values = at::empty({width_}, at::kFloat);
        std::memcpy(values.mutable_data_ptr(), file.data() + offset(file, side) + row * row_bytes, row_bytes);
        const bool finite = at::isfinite(values).all().item<bool>();
        const double norm = at::norm(values.to(at::kDouble)).item<double>();
        fit = fit && finite && norm >= kSmallestNorm && norm <= kLargestNorm;
        rows_[side].push_back(values);
        const std::size_t entry = offset(file, 2) + (2 * row + side) * sizeof(std::uint64_t);
        const auto begin = field<std::uint64_t>(file, entry),
                   end = field<std::uint64_t>(file, entry + sizeof(std::uint64_t));
        texts_.push_back(file.substr(offset(file, 3) + begin, end - begin));
      }
      if (fit) valid_[static_cast<std::size_t>(row / 8)] |= static_cast<std::uint8_t>(1u << (row % 8));
      dropped_ += !fit;
    }
  }

  NamedTensors outputs() override {
    NamedTensors outputs;
    const auto stacked = [&](const std::vector<at::Tensor>& rows) {
      return rows.empty() ? at::empty({0, width_}, at::kFloat) : at::stack(rows);
    };
    outputs.set("input_embeddings", stacked(rows_[0]));
    outputs.set("target_embeddings", stacked(rows_[1]));
    energy_flow::set_texts(outputs, texts_);
    outputs.set("valid", at::tensor(at::ArrayRef<std::uint8_t>(valid_), at::kByte));
    outputs.set("dropped", at::full({1}, dropped_, at::kLong));
    return outputs;
  }

 private:
  static std::uint64_t offset(const std::string& file, std::size_t section) {
    return field<std::uint64_t>(file, kOffsets + 8 * section);
  }

  energy_flow::PairFile source_;
  std::int64_t width_ = 0, dropped_ = 0;
  std::vector<at::Tensor> rows_[2];
  std::vector<std::string> texts_;
  std::vector<std::uint8_t> valid_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting&) {
  return std::make_unique<DatasetFileBaseline>(inputs);
}

}  // namespace twinbench::energy_flow::dataset_file
