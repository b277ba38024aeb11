// Prepare pass and the row-validity file.
#include "src/formats/efds_prepare.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <optional>
#include <thread>

#include "src/common/error.h"
#include "src/formats/row_check.h"

namespace twinbench {
namespace {

// The validity file: magic, version, rows, the five checksums of the file it belongs to, its own checksum, the bitmap.
constexpr char kResumeMagic[8] = {'E', 'F', 'R', 'V', 1, 0, 0, 0};
constexpr std::size_t kBitmapOffset = 48;  // 8 magic + 8 rows + 8 file size + 20 checksums + 4 own checksum

std::array<std::uint8_t, kBitmapOffset> format_header(const EfdsHeader& header,
                                                      const std::vector<std::uint8_t>& bitmap) {
  std::array<std::uint8_t, kBitmapOffset> bytes{};
  std::copy_n(kResumeMagic, sizeof(kResumeMagic), bytes.begin());
  store_little(&bytes[8], header.rows);
  store_little(&bytes[16], header.file_size);
  for (std::size_t i = 0; i < header.crc.size(); ++i) store_little(&bytes[24 + 4 * i], header.crc[i]);
  const auto crc = ::crc32_z(::crc32_z(0, bytes.data(), kBitmapOffset - 4), bitmap.data(), bitmap.size());
  store_little(&bytes[44], static_cast<std::uint32_t>(crc));
  return bytes;
}

void list_dropped(RowValidity& validity) {
  for (std::size_t byte = 0; byte < validity.bitmap.size(); ++byte) {
    if (validity.bitmap[byte] == 0xFF) continue;
    const auto first = static_cast<std::int64_t>(8 * byte);
    for (std::int64_t row = first; row < std::min(first + 8, validity.rows); ++row) {
      if (!validity.valid(row)) validity.dropped.push_back(row);
    }
  }
}

std::optional<RowValidity> read_validity(const std::string& path, const EfdsHeader& header) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 && errno == ENOENT) return std::nullopt;
  const MappedFile file(path);
  const ByteSpan bytes = file.bytes();
  const std::size_t bitmap_bytes = static_cast<std::size_t>((header.rows + 7) / 8);
  if (bytes.size() != kBitmapOffset + bitmap_bytes) return std::nullopt;
  RowValidity validity;
  validity.rows = static_cast<std::int64_t>(header.rows);
  validity.bitmap.assign(bytes.begin() + kBitmapOffset, bytes.end());
  const auto expected = format_header(header, validity.bitmap);
  if (!std::equal(expected.begin(), expected.end(), bytes.begin())) return std::nullopt;
  list_dropped(validity);
  return validity;
}

[[noreturn]] void corrupt(const std::string& section, const std::string& value) {
  throw Error(ErrorKind::kCorrupt, section, value, "copy or write the file again");
}

void check_padding(const EfdsView& view) {
  const EfdsHeader& header = view.header();
  std::uint64_t end = kEfdsHeaderBytes;
  for (int section = 0; section < kEfdsSections; ++section) {
    const ByteSpan padding = view.file().subspan(end, header.offset[section] - end);
    if (!std::all_of(padding.begin(), padding.end(), [](std::uint8_t byte) { return byte == 0; })) {
      corrupt(name_of_section(section), "padding before it is not zero");
    }
    end = header.offset[section] + header.length[section];
  }
}

void check_index(const EfdsView& view) {
  const std::uint8_t* at = view.section(kEfdsIndex).data();
  const std::uint64_t blob = view.header().length[kEfdsBlob];
  std::uint64_t last = 0;
  for (std::uint64_t i = 0; i <= 2 * view.header().rows; ++i) {
    const auto offset = load_little<std::uint64_t>(at + 8 * i);
    if (offset < last || offset > blob) corrupt("text index", "entry " + std::to_string(i));
    last = offset;
  }
}

// A run of whole bytes of the bitmap, sized to stay in a core's cache between checksum and sum.
struct Chunk {
  std::int64_t first_row = 0, end_row = 0;
  std::uint32_t input_crc = 0, target_crc = 0;
};

void check_chunk(const EfdsView& view, Chunk& chunk, RowValidity& validity, std::vector<float>& widened) {
  const std::int64_t width = view.width();
  const auto row_bytes = static_cast<std::size_t>(width) * bytes_of(view.type());
  const auto rows = static_cast<std::size_t>(chunk.end_row - chunk.first_row);
  const auto crc = [&](int section) {
    const ByteSpan bytes = view.section(section).subspan(static_cast<std::size_t>(chunk.first_row) * row_bytes);
    return static_cast<std::uint32_t>(::crc32_z(0, bytes.data(), rows * row_bytes));
  };
  chunk.input_crc = crc(kEfdsInputs);
  chunk.target_crc = crc(kEfdsTargets);
  const float *inputs = view.inputs(), *targets = view.targets();
  widened.resize(inputs == nullptr ? static_cast<std::size_t>(2 * width) : 0);
  for (std::int64_t row = chunk.first_row; row < chunk.end_row; ++row) {
    bool valid;
    if (inputs != nullptr) {
      valid = row_is_valid(inputs + row * width, targets + row * width, width);
    } else {
      view.read_row(kEfdsInputs, row, widened.data());
      view.read_row(kEfdsTargets, row, widened.data() + width);
      valid = row_is_valid(widened.data(), widened.data() + width, width);
    }
    if (valid) validity.bitmap[static_cast<std::size_t>(row / 8)] |= static_cast<std::uint8_t>(1u << (row % 8));
  }
}

// Runs `work` on `threads` threads, this one included, and throws the first exception any of them ended with.
template <typename Work>
void on_threads(int threads, const Work& work) {
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(std::max(threads, 1)));
  std::vector<std::jthread> others;
  const auto guarded = [&](std::size_t which) {
    try {
      work();
    } catch (...) {
      errors[which] = std::current_exception();
    }
  };
  for (std::size_t i = 1; i < errors.size(); ++i) others.emplace_back(guarded, i);
  guarded(0);
  others.clear();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace

RowValidity verify_efds(const EfdsView& view, int threads) {
  const EfdsHeader& header = view.header();
  check_padding(view);
  for (const int section : {kEfdsIndex, kEfdsBlob}) {
    const ByteSpan bytes = view.section(section);
    if (::crc32_z(0, bytes.data(), bytes.size()) != header.crc[1 + section]) {
      corrupt(name_of_section(section), "checksum mismatch");
    }
  }
  check_index(view);

  RowValidity validity;
  validity.rows = view.rows();
  validity.bitmap.assign(static_cast<std::size_t>((validity.rows + 7) / 8), 0);
  const std::uint64_t row_bytes = header.width * bytes_of(header.type);
  const auto rows_per_chunk = static_cast<std::int64_t>(std::max<std::uint64_t>(1, (128u << 10) / row_bytes / 8)) * 8;
  std::vector<Chunk> chunks;
  for (std::int64_t row = 0; row < validity.rows; row += rows_per_chunk) {
    chunks.push_back({row, std::min(row + rows_per_chunk, validity.rows), 0, 0});
  }
  std::atomic<std::size_t> next{0};
  on_threads(std::min<int>(threads, static_cast<int>(chunks.size())), [&] {
    std::vector<float> widened;
    for (std::size_t i; (i = next.fetch_add(1)) < chunks.size();) check_chunk(view, chunks[i], validity, widened);
  });

  std::uint32_t input_crc = static_cast<std::uint32_t>(::crc32_z(0, nullptr, 0)), target_crc = input_crc;
  for (const Chunk& chunk : chunks) {
    const auto length = static_cast<z_off64_t>(static_cast<std::uint64_t>(chunk.end_row - chunk.first_row) * row_bytes);
    input_crc = static_cast<std::uint32_t>(::crc32_combine64(input_crc, chunk.input_crc, length));
    target_crc = static_cast<std::uint32_t>(::crc32_combine64(target_crc, chunk.target_crc, length));
  }
  if (input_crc != header.crc[1 + kEfdsInputs]) corrupt(name_of_section(kEfdsInputs), "checksum mismatch");
  if (target_crc != header.crc[1 + kEfdsTargets]) corrupt(name_of_section(kEfdsTargets), "checksum mismatch");
  list_dropped(validity);
  return validity;
}

std::string validity_path(const std::string& efds_path) { return efds_path + ".valid"; }

RowValidity prepare_efds(const EfdsFile& file, int threads) {
  RowValidity validity = verify_efds(file.view(), threads);
  AtomicFile output(validity_path(file.path()));
  const auto header = format_header(file.view().header(), validity.bitmap);
  output.write(header);
  output.write(validity.bitmap);
  output.commit();
  return validity;
}

RowValidity load_validity(const EfdsFile& file, int threads, bool* prepared) {
  std::optional<RowValidity> found = read_validity(validity_path(file.path()), file.view().header());
  if (prepared != nullptr) *prepared = !found.has_value();
  return found ? std::move(*found) : prepare_efds(file, threads);
}

}  // namespace twinbench
