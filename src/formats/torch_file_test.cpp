// torch.save files: those of a real torch (testdata/make_torch_files.py), and hostile ones built here.
#include "src/formats/torch_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/formats/convert.h"
#include "src/formats/pickle.h"
#include "src/formats/test_support.h"
#include "src/formats/zip_archive.h"

namespace twinbench {
namespace {

// The source folder, found from the program's own place: compilers may be given relative or foreign paths (ccache).
std::string sample(const std::string& name) {
  const std::string file = "src/formats/testdata/" + name + ".pt";
  for (const auto& start : {std::filesystem::read_symlink("/proc/self/exe"), std::filesystem::path(__FILE__),
                            std::filesystem::current_path() / "here"}) {
    for (auto folder = start.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
      if (std::filesystem::exists(folder / file)) return (folder / file).string();
    }
  }
  return file;
}

std::string error_of_sample(const std::string& name) {
  return error_of([&] { read_any(sample(name)); });
}

void expect_sample_values(const Dataset& dataset) {
  ASSERT_EQ(dataset.rows, 3);
  ASSERT_EQ(dataset.width, 4);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(dataset.inputs[i], static_cast<float>(i) + 0.5f) << i;
    EXPECT_EQ(dataset.targets[i], -static_cast<float>(i) - 0.5f) << i;
  }
  EXPECT_EQ(dataset.input_text(0), "first input");
  EXPECT_EQ(dataset.target_text(0), "first target");
  EXPECT_EQ(dataset.input_text(1), "");
  EXPECT_EQ(dataset.target_text(1), "\xC3\xA9t\xC3\xA9");
  EXPECT_EQ(dataset.input_text(2), std::string(300, 'x'));
}

TEST(TorchFile, ReadsWhatTorchSaves) {
  for (const char* name : {"plain", "strided", "transposed", "bf16", "half_bf16", "half_double", "protocol4", "ordered",
                           "requires_grad"}) {
    SCOPED_TRACE(name);
    expect_sample_values(read_any(sample(name)));
  }
  EXPECT_EQ(read_any(sample("bf16")).stored, StoredType::kBf16);
  EXPECT_EQ(read_any(sample("half_bf16")).stored, StoredType::kFp32) << "only one of the two has so few bits";
  EXPECT_EQ(read_any(sample("half_double")).stored, StoredType::kFp32);
  EXPECT_EQ(read_any(sample("plain")).generation_info,
            R"({"model":"teacher","pairs":1099511627776,"loss":-3,"ok":true,"none":null,"sizes":[1,2,3,4]})");
  const Dataset empty = read_any(sample("empty"));
  EXPECT_EQ(empty.rows, 0);
  EXPECT_EQ(empty.width, 4);
}

TEST(TorchFile, RefusesWhatItMustNot) {
  EXPECT_EQ(error_of_sample("custom_class"), "bad_file: pickle global");
  EXPECT_EQ(error_of_sample("integers"), "bad_dtype: input_embeddings");
  EXPECT_EQ(error_of_sample("expanded"), "corrupt: pickle tensor");
  EXPECT_EQ(error_of_sample("short"), "dim_mismatch: input_embeddings");
  EXPECT_EQ(error_of_sample("narrow"), "dim_mismatch: target_embeddings width");
  EXPECT_EQ(error_of_sample("no_targets"), "unknown_name: torch file key");
  EXPECT_EQ(error_of_sample("texts_only"), "bad_file: torch file");
  EXPECT_EQ(error_of_sample("legacy").substr(0, 8), "bad_file");
  const TemporaryDirectory directory;
  EXPECT_EQ(error_of([&] { convert_dataset(sample("not_a_number"), directory.file("a.efds")); }),
            "non_finite: input_embeddings row 1");
  EXPECT_EQ(files_in(directory.path()), 0u);
}

TEST(TorchFile, TheErrorNamesTheGlobal) {
  try {
    read_any(sample("custom_class"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.value(), "__main__.Custom");
  }
}

TEST(TorchFile, EveryTruncationAndEveryFlippedByteIsHandled) {
  const std::string good = read_bytes(sample("plain"));
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_NE(error_of([&] { parse_torch_file(as_bytes(good.substr(0, length))); }), "no error") << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {  // padding and time stamps may change; nothing may crash
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0xFF);
    error_of([&] { parse_torch_file(as_bytes(bytes)); });
  }
}

std::string text(const std::string& value) {
  std::string bytes = "X";
  append_little(bytes, static_cast<std::uint32_t>(value.size()));
  return bytes + value;
}

std::string integer(std::int32_t value) {
  std::string bytes = "J";
  append_little(bytes, value);
  return bytes;
}

// A tensor of shape [1, 2] in a float storage of `elements`, at an offset and with a row stride.
std::string tensor(std::int32_t elements, std::int32_t offset, std::int32_t stride, std::int32_t columns = 2) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") +
         text("cpu") + integer(elements) + "tQ" + integer(offset) + integer(1) + integer(columns) + "\x86" +
         integer(2) + integer(stride) +
         "\x86\x89"
         "ccollections\nOrderedDict\n)RtR";
}

std::string archive(const std::string& inputs, const std::string& storage) {
  const std::string pickle = "\x80\x02}(" + text("text_pairs") + "](" + text("a") + text("b") + "\x86" + "e" +
                             text("input_embeddings") + inputs + text("target_embeddings") + tensor(2, 0, 1) + "u.";
  return make_zip({{"d/data.pkl", pickle}, {"d/data/0", storage}});
}

std::string error_of_archive(const std::string& bytes) {
  return error_of([&] { parse_torch_file(as_bytes(bytes)); });
}

TEST(TorchFile, TensorsMayNotLeaveTheirStorage) {
  const std::string storage(8, '\0');
  EXPECT_EQ(error_of_archive(archive(tensor(2, 0, 1), storage)), "no error");
  EXPECT_EQ(error_of_archive(archive(tensor(2, 1, 1), storage)), "corrupt: pickle tensor");
  EXPECT_EQ(error_of_archive(archive(tensor(2, 0, 2), storage)), "corrupt: pickle tensor");
  EXPECT_EQ(error_of_archive(archive(tensor(2, -1, 1), storage)), "corrupt: pickle tensor");
  EXPECT_EQ(error_of_archive(archive(tensor(2, 0, -1), storage)), "corrupt: pickle tensor");
  EXPECT_EQ(error_of_archive(archive(tensor(2, 0, 0, 2'000'000'000), storage)), "corrupt: pickle tensor");
  EXPECT_EQ(error_of_archive(archive(tensor(2, 0, 2'000'000'000, 2'000'000'000), storage)), "corrupt: pickle tensor");
  EXPECT_EQ(error_of_archive(archive(tensor(3, 1, 1), storage)), "truncated: storage of input_embeddings");
  EXPECT_EQ(error_of_archive(archive(text("no tensor"), storage)), "bad_dtype: input_embeddings");
}

std::string error_of_pickle(const std::string& bytes) {
  return error_of([&] { Pickle pickle(as_bytes(bytes)); });
}

TEST(TorchFile, HostilePickles) {
  EXPECT_EQ(error_of_pickle("\x80\x02"
                            "cposix\nsystem\n" +
                            text("true") + "\x85R."),
            "bad_file: pickle global");
  EXPECT_EQ(error_of_pickle("\x80\x02"
                            "cbuiltins\neval\n."),
            "bad_file: pickle global");
  EXPECT_EQ(error_of_pickle("\x80\x02}b."), "bad_file: pickle opcode");
  EXPECT_EQ(error_of_pickle(""), "truncated: pickle");
  EXPECT_EQ(error_of_pickle("."), "corrupt: pickle stack");
  EXPECT_EQ(error_of_pickle("NN."), "corrupt: pickle stack");
  EXPECT_EQ(error_of_pickle("(N."), "corrupt: pickle stack");
  EXPECT_EQ(error_of_pickle("\x85."), "corrupt: pickle stack");
  EXPECT_EQ(error_of_pickle("N(\x85."), "corrupt: pickle stack");  // may not reach below a mark
  EXPECT_EQ(error_of_pickle("te."), "corrupt: pickle stack");
  EXPECT_EQ(error_of_pickle("Na."), "corrupt: pickle stack");
  EXPECT_EQ(error_of_pickle("NNa."), "corrupt: pickle list");
  EXPECT_EQ(error_of_pickle("}(Nu."), "corrupt: pickle dict");
  EXPECT_EQ(error_of_pickle("h\x05."), "corrupt: pickle memo");
  EXPECT_EQ(error_of_pickle("NQ."), "corrupt: pickle storage");
  EXPECT_EQ(error_of_pickle("NNR."), "corrupt: pickle call");
  EXPECT_EQ(error_of_pickle("\x8a\x09"
                            "123456789."),
            "corrupt: pickle integer");
  EXPECT_EQ(error_of_pickle("cno line end"), "corrupt: pickle global");
  EXPECT_EQ(error_of_pickle("ctorch\nFloatStorage\n)R."), "bad_file: pickle call");
  std::string long_text = "X";
  append_little(long_text, ~std::uint32_t{0});
  EXPECT_EQ(error_of_pickle(long_text + "abc."), "truncated: pickle");
  EXPECT_EQ(error_of_pickle("\x80\x07N."), "corrupt: pickle protocol");
}

TEST(TorchFile, ValuesThatContainThemselvesAreDescribedAndEnd) {
  const std::string cycle = "]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a.";
  const Pickle pickle(as_bytes(cycle));
  EXPECT_LT(to_json(pickle.root()).size(), 200u);
  std::string wide = "]q" + std::string(1, '\0') + "(";  // a list that holds itself 200 times: 200^16 paths
  for (int i = 0; i < 200; ++i) wide += "h" + std::string(1, '\0');
  wide += "e.";
  const Pickle second(as_bytes(wide));
  EXPECT_LT(to_json(second.root()).size(), 1'000'000u);
}

TEST(Zip, SixtyFourBitFields) {
  const std::string good = make_zip({{"a", "12345678"}, {"b", "xy"}}, true);
  const ZipArchive archive(as_bytes(good));
  EXPECT_EQ(archive.entries().size(), 2u);
  EXPECT_EQ(as_text(archive.read("a")), "12345678");
  EXPECT_EQ(as_text(archive.read("b")), "xy");
  const std::size_t end = good.find("PK\x06\x06"), locator = good.find("PK\x06\x07"), central = good.find("PK\x01\x02");
  for (const std::size_t field :
       {end + 32, end + 40, end + 48, locator + 8, central + 46 + 1 + 4, central + 46 + 1 + 20}) {
    std::string bytes = good;
    bytes[field + 7] = '\x80';  // 2^63 and more
    EXPECT_EQ(error_of([&] { ZipArchive hostile(as_bytes(bytes)); }).substr(0, 7), "corrupt") << field;
  }
}

TEST(Zip, DirectoryThatLies) {
  const auto parse = [](std::string bytes, std::size_t at, std::uint32_t value) {
    std::memcpy(bytes.data() + at, &value, 4);
    return error_of([&] { ZipArchive archive(as_bytes(bytes)); });
  };
  const std::string good = make_zip({{"a", "12345678"}, {"b", "xy"}});
  const std::size_t central = good.find("PK\x01\x02"), end = good.find("PK\x05\x06");
  EXPECT_EQ(error_of([&] { EXPECT_EQ(as_text(ZipArchive(as_bytes(good)).read("b")), "xy"); }), "no error");
  EXPECT_EQ(error_of([&] { ZipArchive(as_bytes(good)).read("c"); }), "unknown_name: zip entry");
  EXPECT_EQ(parse(good, central + 24, 9), "corrupt: zip entry a");         // two sizes
  EXPECT_EQ(parse(good, central + 42, 1u << 30), "corrupt: zip entry a");  // local header outside
  EXPECT_EQ(parse(good, central + 42, 1), "corrupt: zip entry a");         // no local header there
  EXPECT_EQ(parse(good, central + 10, 8), "bad_file: zip entry a");        // compressed
  EXPECT_EQ(parse(good, end + 16, 1u << 30), "corrupt: zip directory");
  EXPECT_EQ(parse(good, end + 12, 46), "corrupt: zip directory");
  EXPECT_EQ(parse(good, central + 24, ~0u), "corrupt: zip zip64 extra field");
  EXPECT_EQ(error_of([&] { ZipArchive(as_bytes(good.substr(0, good.size() - 1))); }), "truncated: zip");
  const std::string twice = make_zip({{"a", "1"}, {"a", "2"}});
  EXPECT_EQ(error_of([&] { ZipArchive(as_bytes(twice)); }), "corrupt: zip entry a");
  std::string damaged = good;
  damaged[good.find("12345678")] = 'X';
  EXPECT_EQ(error_of([&] { ZipArchive(as_bytes(damaged)).read("a"); }), "corrupt: zip entry a");
  std::string overlapping = good;  // the second directory entry points into the first one's range
  const std::size_t second = good.find("PK\x01\x02", central + 4);
  std::memcpy(overlapping.data() + second + 42, good.data() + central + 42, 4);
  overlapping[second + 46] = 'a';
  EXPECT_NE(error_of([&] { ZipArchive(as_bytes(overlapping)); }), "no error");
}

}  // namespace
}  // namespace twinbench
