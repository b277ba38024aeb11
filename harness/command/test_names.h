// Which tests the tree holds, read from its sources.
#pragma once

#include <set>
#include <string>

namespace twinbench {

// "gtest <suite>.<name>" of every *_test.cpp, and "pytest <file> <function>" of every test_*.py below the folders of
// the layers. Throws Error(kInputOutput) where `root` is not the repository's.
std::set<std::string> test_facts(const std::string& root);

// Those of one file's text, without comments. `file`: its name, which decides what it is.
std::set<std::string> tests_in(const std::string& file, const std::string& text);

}  // namespace twinbench
