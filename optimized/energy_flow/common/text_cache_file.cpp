// The text cache's file: a checkpoint whose sections have an entry a row, the least recent first.
#include <algorithm>
#include <filesystem>

#include "optimized/energy_flow/common/text_cache.h"
#include "src/common/error.h"
#include "src/formats/checkpoint_file.h"

namespace twinbench::energy_flow {
namespace {

constexpr const char* kParameters = "parameters";

template <class T>
TensorBytes section(const char* name, ElementType type, const std::vector<T>& values, std::int64_t width) {
  const auto entries = static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(1, width);
  return {
      name, type, {entries, width}, {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)}};
}

template <class T>
std::vector<T> read(const CheckpointView& file, const char* name, ElementType type, std::int64_t entries,
                    std::int64_t width) {
  std::vector<T> values(static_cast<std::size_t>(entries * width));
  file.read(name, type, {entries, width}, {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)});
  return values;
}

}  // namespace

void TextCache::save(const std::string& path, const std::string& parameters) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint8_t> letters;
  std::vector<std::int32_t> length, ids;
  std::vector<std::int64_t> version, tag;
  std::vector<float> rows;
  slots_.each([&](std::int32_t slot) {
    letters.insert(letters.end(), letters_.begin() + slot * shape_.longest,
                   letters_.begin() + (slot + 1) * shape_.longest);
    length.push_back(length_[at(slot)]), version.push_back(version_[at(slot)]), tag.push_back(tag_[at(slot)]);
    ids.insert(ids.end(), ids_.begin() + slot * shape_.tokens, ids_.begin() + (slot + 1) * shape_.tokens);
    rows.insert(rows.end(), row_of(slot), row_of(slot) + shape_.cells);
  });
  PlaneCompressor compressor;
  write_checkpoint(
      path,
      {section("letters", ElementType::kU8, letters, shape_.longest), section("length", ElementType::kI32, length, 1),
       section("ids", ElementType::kI32, ids, shape_.tokens), section("version", ElementType::kI64, version, 1),
       section("tag", ElementType::kI64, tag, 1), section("rows", ElementType::kF32, rows, shape_.cells)},
      {{kParameters, parameters}}, 0, SectionCodec::kPlanes, compressor);
}

std::string TextCache::restore(const std::string& path, const std::string& parameters) {
  const std::lock_guard lock(mutex_);
  try {
    const CheckpointFile whole(path);
    const CheckpointView& file = whole.view();
    const std::int64_t entries = file.section("length").shape.at(0);
    const auto letters = read<std::uint8_t>(file, "letters", ElementType::kU8, entries, shape_.longest);
    const auto length = read<std::int32_t>(file, "length", ElementType::kI32, entries, 1),
               ids = read<std::int32_t>(file, "ids", ElementType::kI32, entries, shape_.tokens);
    const auto version = read<std::int64_t>(file, "version", ElementType::kI64, entries, 1),
               tag = read<std::int64_t>(file, "tag", ElementType::kI64, entries, 1);
    const auto rows = read<float>(file, "rows", ElementType::kF32, entries, shape_.cells);
    const auto named = file.metadata().find(kParameters);
    const bool same = named != file.metadata().end() && named->second == parameters;
    if (std::any_of(length.begin(), length.end(), [&](std::int32_t one) { return one < 0 || one > shape_.longest; }))
      throw Error(ErrorKind::kCorrupt, "length", path, "a text is longer than its place");
    slots_.clear();
    std::fill(miss_of_.begin(), miss_of_.end(), RecentSlots::kNone);
    for (std::int64_t i = std::max<std::int64_t>(0, entries - shape_.limit); i < entries;
         ++i) {  // the most recent ones
      const auto* const text = reinterpret_cast<const char*>(letters.data()) + i * shape_.longest;
      const std::int32_t slot = slot_of({{text, at(length[at(i)])}, tag[at(i)]}).first;
      std::copy_n(ids.begin() + i * shape_.tokens, shape_.tokens, ids_.begin() + slot * shape_.tokens);
      version_[at(slot)] = same ? version[at(i)] : -1;
      std::copy_n(rows.begin() + i * shape_.cells, shape_.cells, row_of(slot));
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace twinbench::energy_flow
