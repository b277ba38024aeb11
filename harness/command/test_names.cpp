// By the text alone: what a build or a filter leaves out is still there, what is deleted or disabled is not.
#include "harness/command/test_names.h"

#include <filesystem>
#include <regex>

#include "src/common/error.h"
#include "src/formats/text_file.h"

namespace twinbench {
namespace {

constexpr const char* kFolders[] = {"baselines", "ci/tests",      "harness",   "kernels",
                                    "optimized", "reports/tests", "scenarios", "src"};

void add_matches(const std::string& text, const std::regex& wanted, const std::string& kind, const char* between,
                 std::set<std::string>& facts) {
  for (std::sregex_iterator found(text.begin(), text.end(), wanted), end; found != end; ++found)
    facts.insert(kind + (*found)[1].str() + (found->size() > 2 ? between + (*found)[2].str() : ""));
}

}  // namespace

std::set<std::string> tests_in(const std::string& file, const std::string& text) {
  static const std::regex comment("//[^\n]*"), macro(R"(\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\))"),
      function(R"((?:^|\n)[ \t]*(?:async[ \t]+)?def[ \t]+(test_\w+)[ \t]*\()");
  std::set<std::string> facts;
  if (file.ends_with("_test.cpp")) add_matches(std::regex_replace(text, comment, ""), macro, "gtest ", ".", facts);
  if (file.starts_with("test_") && file.ends_with(".py"))
    add_matches(text, function, "pytest " + file.substr(0, file.size() - 3) + " ", "", facts);
  return facts;
}

std::set<std::string> test_facts(const std::string& root) {
  std::set<std::string> facts;
  for (const char* const folder : kFolders) {
    const std::filesystem::path below = std::filesystem::path(root) / folder;
    if (!std::filesystem::is_directory(below))
      throw Error(ErrorKind::kInputOutput, "tests", below.string(),
                  "no such folder; run it in the repository, whose tests it lists");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(below)) {
      const std::string name = entry.path().filename().string();
      if (name.ends_with("_test.cpp") || (name.starts_with("test_") && name.ends_with(".py")))
        facts.merge(tests_in(name, read_text_file(entry.path().string(), "test")));
    }
  }
  return facts;
}

}  // namespace twinbench
