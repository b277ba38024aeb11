// Helpers of the dataset tests and of the fuzzers' seed generator: small datasets, file bytes, zip archives, error
// checks.
#pragma once

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "src/common/error.h"
#include "src/common/philox.h"
#include "src/formats/dataset.h"
#include "src/formats/file_io.h"

namespace twinbench {

// Rows of norm about 1 (Philox, seed 1234, synthetic-data stream), texts that differ from row to row.
inline Dataset sample_dataset(std::int64_t rows, std::int64_t width, StoredType stored = StoredType::kFp32) {
  Dataset dataset;
  dataset.rows = rows;
  dataset.width = width;
  dataset.stored = stored;
  for (std::uint32_t field = 0; field < 2; ++field) {
    auto& values = field == 0 ? dataset.inputs : dataset.targets;
    for (std::int64_t i = 0; i < rows * width; ++i) {
      const PhiloxWords words =
          philox(1234, static_cast<std::uint32_t>(i % width), static_cast<std::uint32_t>(i / width), 0,
                 philox_tag(PhiloxStream::kSyntheticData, field));
      values.push_back(philox_normal_pair(words.w[0], words.w[1]).cosine);
    }
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    dataset.texts.add("input " + std::to_string(row));
    dataset.texts.add("target of row " + std::to_string(row));
  }
  normalise_rows(dataset);
  return dataset;
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) { write_file(path, as_bytes(bytes)); }

inline std::size_t files_in(const std::string& directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), std::filesystem::directory_iterator()));
}

// "corrupt: text index", or "no error": what `action` threw, kind and field.
template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::string(name_of(error.kind())) + ": " + error.field();
  }
  return "no error";
}

template <typename T>
void append_little(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// A zip archive of stored entries, as torch.save lays it out, without data descriptors. With `zip64` every size, offset
// and count stands in the 64-bit fields, as in archives beyond 4 GiB.
inline std::string make_zip(const std::vector<std::pair<std::string, std::string>>& entries, bool zip64 = false) {
  std::string bytes, directory;
  for (const auto& [name, content] : entries) {
    const std::uint64_t offset = bytes.size(), size = content.size();
    const auto crc = static_cast<std::uint32_t>(
        ::crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size()));
    std::string extra;
    if (zip64) {
      for (const std::uint16_t field : {1, 24}) append_little(extra, field);
      for (const std::uint64_t field : {size, size, offset}) append_little(extra, field);
    }
    const auto small = [zip64](std::uint64_t value) {
      return zip64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(value);
    };
    std::string common;  // version, flags, method, time, date, checksum, sizes, name and extra lengths
    for (const std::uint16_t field : {20, 0, 0, 0, 0}) append_little(common, field);
    for (const std::uint32_t field : {crc, small(size), small(size)}) append_little(common, field);
    append_little(common, static_cast<std::uint16_t>(name.size()));
    append_little(common, static_cast<std::uint16_t>(extra.size()));
    append_little(bytes, std::uint32_t{0x04034b50});
    bytes += common + name + extra + content;
    append_little(directory, std::uint32_t{0x02014b50});
    append_little(directory, std::uint16_t{20});
    directory += common;
    for (int i = 0; i < 3; ++i) append_little(directory, std::uint16_t{0});  // comment, disk, attributes
    append_little(directory, std::uint32_t{0});
    append_little(directory, small(offset));
    directory += name + extra;
  }
  const std::uint64_t start = bytes.size(), count = entries.size(), end = bytes.size() + directory.size();
  bytes += directory;
  if (zip64) {
    append_little(bytes, std::uint32_t{0x06064b50});
    append_little(bytes, std::uint64_t{44});
    for (const std::uint16_t field : {45, 45}) append_little(bytes, field);
    for (const std::uint32_t field : {0, 0}) append_little(bytes, field);
    for (const std::uint64_t field : {count, count, end - start, start}) append_little(bytes, field);
    append_little(bytes, std::uint32_t{0x07064b50});
    append_little(bytes, std::uint32_t{0});
    append_little(bytes, end);
    append_little(bytes, std::uint32_t{1});
  }
  const auto entries_field = static_cast<std::uint16_t>(zip64 ? 0xFFFF : count);
  append_little(bytes, std::uint32_t{0x06054b50});
  for (const std::uint16_t field : {std::uint16_t{0}, std::uint16_t{0}, entries_field, entries_field})
    append_little(bytes, field);
  append_little(bytes, zip64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(end - start));
  append_little(bytes, zip64 ? ~std::uint32_t{0} : static_cast<std::uint32_t>(start));
  append_little(bytes, std::uint16_t{0});
  return bytes;
}

}  // namespace twinbench
