// Sound files of every format: datasets with no rows, one and three, in both stored types, and checkpoints.
#include "harness/fuzz/seeds.h"

#include <filesystem>

#include "src/formats/checkpoint_file.h"
#include "src/formats/convert.h"
#include "src/formats/test_support.h"
#include "src/formats/zip_archive.h"

namespace twinbench {

void make_seeds(const std::string& folder, const std::vector<std::string>& torch_files) {
  const auto path = [&](const std::string& target, const std::string& name) {
    std::filesystem::create_directories(folder + "/" + target);
    return folder + "/" + target + "/" + name;
  };
  for (const std::int64_t rows : {0, 1, 3}) {
    for (const StoredType type : {StoredType::kFp32, StoredType::kBf16}) {
      const Dataset dataset = sample_dataset(rows, 4, type);
      const std::string name = std::to_string(rows) + name_of(type);
      write_any(path("efds", name + ".efds"), dataset);
      write_any(path("safetensors", name + ".safetensors"), dataset);
      write_any(path("jsonl", name + ".jsonl"), dataset);
    }
  }
  const std::vector<float> zeros(3000);
  const ByteSpan bytes(reinterpret_cast<const std::uint8_t*>(zeros.data()), 12000);
  PlaneCompressor compressor;
  for (const SectionCodec codec : {SectionCodec::kStored, SectionCodec::kPlanes})
    write_checkpoint(path("checkpoint", codec == SectionCodec::kStored ? "stored" : "planes"),
                     {{"a", ElementType::kF32, {3000}, bytes}, {"b", ElementType::kI64, {1}, bytes.first(8)}},
                     {{"config.lattice_width", "50"}}, 3, codec, compressor);
  write_bytes(path("checkpoint", "index"), R"({"metadata":{},"sections":[{"name":"a","type":"U8","shape":[16],)"
                                           R"("codec":"stored","stored":16,"crc":"00000001"}]})");
  write_bytes(path("checkpoint", "no_sections"), R"({"metadata":{"a":"b"},"sections":[]})");
  write_bytes(path("checkpoint", "too_long"), R"({"metadata":{},"sections":[{"name":"a","type":"U8","shape":[17],)"
                                              R"("codec":"stored","stored":17,"crc":"00000001"}]})");
  write_bytes(path("checkpoint", "no_frame"), R"({"metadata":{},"sections":[{"name":"a","type":"F32","shape":[9],)"
                                              R"("codec":"planes","stored":16,"crc":"00000001"}]})");
  write_bytes(path("jsonl", "plain"),
              "{\"input\":\"a\",\"target\":\"b\"}\n{\"input\":\"\",\"target\":\"c\",\"metadata\":{}}\n");
  write_bytes(path("jsonl", "text"),
              "Mr. Smith went home by train. He slept very well today.\n%\nB\bBold words are here.\n");
  for (const std::string& file : torch_files) {
    const std::string name = std::filesystem::path(file).filename().string(), bytes = read_bytes(file);
    write_bytes(path("torch_file", name), bytes);
    if (!bytes.starts_with("PK")) continue;
    const ZipArchive archive(as_bytes(bytes));
    for (const ZipEntry& entry : archive.entries()) {
      if (entry.name.ends_with("data.pkl"))
        write_bytes(path("torch_file", name + ".pkl"), std::string(as_text(entry.bytes)));
    }
  }
}

}  // namespace twinbench
