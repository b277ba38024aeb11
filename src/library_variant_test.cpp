// Every component has a library variant, or says why there is none.
#include <gtest/gtest.h>

#include "src/registry.h"

namespace twinbench {
namespace {

TEST(LibraryVariant, IsThereOrItsAbsenceHasAReason) {
  for (const auto& component : components())
    EXPECT_EQ(component.library == nullptr, !component.spec.no_library.empty())
        << component.spec.id() << ": give it baselines/.../library.cpp or \"no_library\" in its spec.json, not both";
}

TEST(LibraryVariant, RunsBackwardWhereTheComponentDoes) {
  std::size_t backward = 0;
  for (const Cell& cell : all_cells()) backward += cell.variant == Variant::kLibrary && cell.setting().backward();
  EXPECT_GT(backward, 0u);
}

}  // namespace
}  // namespace twinbench
