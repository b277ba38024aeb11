// Whatever an allocator says, the user reads how much was asked for, what the limit is and what helps.
#include "harness/runner/told_error.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

namespace twinbench {
namespace {

TEST(ToldError, LibTorchsRefusalBecomesATypedError) {
  const auto error = refused_memory_in(
      "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
      "12884901888 bytes. Error code 12 (Cannot allocate memory)\nException raised from posix_memalign\nframe #0: f");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::kOutOfMemory);
  EXPECT_EQ(error->field(), "host memory");
  EXPECT_EQ(error->value(), "12884901888 bytes more");
  EXPECT_NE(error->remedy().find("MiB left"), std::string::npos) << error->remedy();
  EXPECT_NE(error->remedy().find("--size"), std::string::npos) << error->remedy();
  const std::string line = error->what();
  for (const char* raw : {"alloc_cpu", "frame", "\n", "Error code"})
    EXPECT_EQ(line.find(raw), std::string::npos) << line;
}

TEST(ToldError, TheCardsRefusalNamesItsRemedy) {
  const auto error = refused_memory_in(
      "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 31.36 GiB\nframe #0: f");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->field(), "memory of the card");
  EXPECT_EQ(error->value(), "20.00 GiB more");
  EXPECT_NE(error->remedy().find("a smaller case"), std::string::npos) << error->remedy();
  EXPECT_NE(error->remedy().find("31.36 GiB"), std::string::npos) << "the card's capacity is the limit";
}

TEST(ToldError, TheStandardLibrarysRefusalNamesNoSize) {
  const std::string line = told(std::bad_alloc());
  EXPECT_EQ(line.rfind("out_of_memory: host memory is 'more than there is': ", 0), 0u) << line;
}

TEST(ToldError, WhatTheSystemRefusedALibraryIsTheEnvironments) {
  const std::runtime_error seed("Unable to open /dev/urandom\nframe #0: c10::detail::getNonDeterministicRandom");
  const std::system_error thread(EAGAIN, std::generic_category(), "thread");
  for (const std::exception* error :
       {static_cast<const std::exception*>(&seed), static_cast<const std::exception*>(&thread)}) {
    const auto refused = refused_by_system(*error);
    ASSERT_TRUE(refused) << error->what();
    EXPECT_EQ(refused->kind(), ErrorKind::kInputOutput);
    EXPECT_EQ(told(*error).rfind("input_output: system is '", 0), 0u) << told(*error);
  }
  EXPECT_FALSE(refused_by_system(std::runtime_error("expected scalar type Float")));
}

// The stack of a thread that no longer fits is what a limit of memory refuses first.
TEST(ToldError, AThreadWithoutRoomForItsStackIsALackOfMemory) {
  EXPECT_EQ(refused_thread(EAGAIN).kind(), ErrorKind::kInputOutput);
  rlimit before{};
  getrlimit(RLIMIT_DATA, &before);
  const rlimit none{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_DATA, &none);
  const Error refused = refused_thread(EAGAIN);
  setrlimit(RLIMIT_DATA, &before);
  EXPECT_EQ(refused.kind(), ErrorKind::kOutOfMemory);
  EXPECT_NE(refused.value().find("MiB more for a thread's stack"), std::string::npos) << refused.value();
}

TEST(ToldError, OtherErrorsAreNoRefusal) {
  for (const char* text : {"expected scalar type Float", "", "CUDA error: misaligned address", "tried to allocate"})
    EXPECT_FALSE(refused_memory_in(text)) << text;
  EXPECT_EQ(told(std::runtime_error("expected scalar type Float\nframe #0")), "expected scalar type Float");
  EXPECT_EQ(told(Error(ErrorKind::kBadShape, "weights", "[3]", "give [4]")), "bad_shape: weights is '[3]': give [4]");
  EXPECT_EQ(told(std::runtime_error("CUDA error: misaligned address")).rfind("CUDA_ERROR(cudaErrorMisaligned", 0), 0u);
}

}  // namespace
}  // namespace twinbench
