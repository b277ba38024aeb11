// The project's scenario files with small changes: each is read, or refused by an error that names it.
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/fuzz/changes.h"
#include "scenarios/runner/catalogue.h"
#include "scenarios/runner/config.h"
#include "src/common/error.h"
#include "src/formats/file_io.h"
#include "src/formats/text_file.h"

namespace twinbench {
namespace {

constexpr std::uint32_t kChangesPerFile = 40;

std::filesystem::path sources() {
  for (auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    if (std::filesystem::exists(folder / "scenarios/experiments")) return folder;
  return {};
}

TEST(ScenarioFiles, WithSmallChangesAreReadOrRefusedByName) {
  const TemporaryDirectory folder;
  const std::string file = folder.file("changed.yaml");
  int refused = 0, taken = 0, files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(sources() / "scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    const std::string text = read_text_file(entry.path().string(), "scenario");
    for (std::uint32_t change = 0; change < kChangesPerFile; ++change) {
      std::string bytes = changed(text, change);
      if (change % 3 == 0) bytes = changed(bytes, change + 1);
      write_file(file, as_bytes(bytes));
      try {
        const ScenarioConfig config = read_scenario(file, catalogue());
        EXPECT_FALSE(config.criteria.empty()) << bytes;
        ++taken;
      } catch (const Error& error) {
        EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what() << '\n' << bytes;
        EXPECT_NE(std::string(error.what()).find("changed.yaml"), std::string::npos) << error.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(files, 8);
  EXPECT_GT(refused, 2 * files);
  EXPECT_GT(taken, 2 * files);
}

}  // namespace
}  // namespace twinbench
