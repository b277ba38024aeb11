// Reading and writing EFDS.
#include "src/formats/efds.h"

#include <zlib.h>

#include <array>
#include <vector>

#include "src/common/error.h"
#include "src/formats/efds_prepare.h"
#include "src/formats/float_formats.h"

namespace twinbench {

void EfdsView::read_row(int section, std::int64_t row, float* into) const {
  const auto width = static_cast<std::size_t>(header_.width);
  const std::uint8_t* at =
      file_.data() + header_.offset[section] + static_cast<std::uint64_t>(row) * width * bytes_of(header_.type);
  if (header_.type == StoredType::kFp32) {
    std::memcpy(into, at, width * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < width; ++i) into[i] = widen_bf16(load_little<std::uint16_t>(at + 2 * i));
}

std::string_view EfdsView::text(std::int64_t index) const {
  const std::uint8_t* at = file_.data() + header_.offset[kEfdsIndex] + 8 * static_cast<std::uint64_t>(index);
  const auto begin = load_little<std::uint64_t>(at), end = load_little<std::uint64_t>(at + 8);
  if (begin > end || end > header_.length[kEfdsBlob]) {
    throw Error(ErrorKind::kCorrupt, "text index", "entry " + std::to_string(index),
                "offsets must not fall and must lie inside the blob");
  }
  return as_text(section(kEfdsBlob).subspan(begin, end - begin));
}

EfdsFile::EfdsFile(const std::string& path, std::optional<std::int64_t> expected_width)
    : mapping_(path), view_(mapping_.bytes()) {
  if (expected_width && *expected_width != view_.width()) {
    throw Error(ErrorKind::kDimensionMismatch, "width of " + path, std::to_string(view_.width()),
                "the configuration says " + std::to_string(*expected_width));
  }
}

Dataset read_efds(const EfdsView& view) {
  verify_efds(view);
  Dataset dataset;
  dataset.format = "efds";
  dataset.rows = view.rows();
  dataset.width = view.width();
  dataset.stored = view.type();
  const auto elements = static_cast<std::size_t>(dataset.rows * dataset.width);
  dataset.inputs.resize(elements);
  dataset.targets.resize(elements);
  for (std::int64_t row = 0; row < dataset.rows; ++row) {
    view.read_row(kEfdsInputs, row, dataset.inputs.data() + row * dataset.width);
    view.read_row(kEfdsTargets, row, dataset.targets.data() + row * dataset.width);
  }
  std::vector<std::uint64_t> offsets(2 * view.header().rows + 1);
  std::memcpy(offsets.data(), view.section(kEfdsIndex).data(), offsets.size() * sizeof(std::uint64_t));
  dataset.texts = TextTable(std::string(as_text(view.section(kEfdsBlob))), std::move(offsets));
  return dataset;
}

void write_efds(const std::string& path, const Dataset& dataset) {
  EfdsHeader header = efds_layout(static_cast<std::uint64_t>(dataset.rows), static_cast<std::uint64_t>(dataset.width),
                                  dataset.stored, dataset.texts.blob().size());
  check_sizes(dataset);
  std::array<std::vector<std::uint16_t>, 2> narrowed;
  const auto bytes_to_store = [&](const std::vector<float>& values, std::vector<std::uint16_t>& narrow) {
    if (dataset.stored == StoredType::kFp32) {
      return ByteSpan(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(float));
    }
    narrow.reserve(values.size());
    for (const float value : values) narrow.push_back(narrow_bf16(value));
    return ByteSpan(reinterpret_cast<const std::uint8_t*>(narrow.data()), narrow.size() * sizeof(std::uint16_t));
  };
  const auto& offsets = dataset.texts.offsets();
  const std::array<ByteSpan, kEfdsSections> sections = {
      bytes_to_store(dataset.inputs, narrowed[0]), bytes_to_store(dataset.targets, narrowed[1]),
      ByteSpan(reinterpret_cast<const std::uint8_t*>(offsets.data()), offsets.size() * sizeof(std::uint64_t)),
      as_bytes(dataset.texts.blob())};
  for (int i = 0; i < kEfdsSections; ++i) {
    header.crc[1 + i] = static_cast<std::uint32_t>(::crc32_z(0, sections[i].data(), sections[i].size()));
  }
  AtomicFile file(path);
  const auto header_bytes = format_efds_header(header);
  file.write(header_bytes);
  for (int i = 0; i < kEfdsSections; ++i) {
    file.write_zeros(header.offset[i] - file.written());
    file.write(sections[i]);
  }
  file.commit();
}

}  // namespace twinbench
