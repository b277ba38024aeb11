// Samples of grids: as many blocks as allowed, spread over every axis, and what they stand for.
#include "harness/simt/counting/block_sample.h"

#include <gtest/gtest.h>

#include "harness/simt/counting/block_words.h"

namespace twinbench::kernels::simt {
namespace {

std::uint64_t taken(const BlockSample& sample, std::uint64_t blocks) {
  std::uint64_t count = 0;
  for (std::uint64_t block = 0; block < blocks; ++block) count += sample.takes(block) ? 1 : 0;
  return count;
}

TEST(BlockSample, TakesAsManyAsAllowed) {
  EXPECT_EQ(taken(BlockSample({64, 1, 1}, 10), 64), 10u);
  EXPECT_EQ(taken(BlockSample({64, 1, 1}, 1), 64), 1u);
  EXPECT_EQ(taken(BlockSample({8, 32, 1}, 8), 256), 8u);
  EXPECT_EQ(taken(BlockSample({8, 1000, 1}, 9), 8000), 8u);
  EXPECT_EQ(taken(BlockSample({5, 7, 3}, 105), 105), 105u);
  EXPECT_TRUE(BlockSample({5, 7, 3}, 105).is_whole());
  EXPECT_FALSE(BlockSample({5, 7, 3}, 104).is_whole());
}

// Two columns of the grid at least, or what a row's blocks share could not be told from their own.
TEST(BlockSample, DiffersAlongEveryAxis) {
  const BlockSample sample({8, 1000, 1}, 8);
  unsigned axes = 0;
  std::uint64_t first = ~0ull;
  for (std::uint64_t block = 0; block < 8000; ++block) {
    if (!sample.takes(block)) continue;
    if (first == ~0ull) first = block;
    axes |= sample.axes_between(first, block);
  }
  EXPECT_EQ(axes, 3u);
  EXPECT_EQ(sample.axes_between(3, 3), 0u);
  EXPECT_EQ(sample.axes_between(3, 5), 1u);
  EXPECT_EQ(sample.axes_between(3, 8 + 3), 2u);
}

// 8 x 1,000 blocks, of them 2 x 4: a tile that a row of the grid shares is there 1,000 times, not 8,000.
TEST(BlockSample, SharedMemoryStandsForLess) {
  const BlockSample sample({8, 1000, 1}, 8);
  EXPECT_EQ(sample.stands_for(0), 1000.0);
  EXPECT_EQ(sample.stands_for(1), 250.0);
  EXPECT_EQ(sample.stands_for(2), 4.0);
  EXPECT_EQ(sample.stands_for(3), 1.0);
}

// A product's launch: a sector of a row's own, one of a column's weights and one of the block's own.
TEST(BlockSample, WhatTheGridReadsIsToldFromTheSample) {
  const BlockSample sample({8, 1000, 1}, 8);
  BlockWords words;
  words.begin_launch(sample);
  const auto read = [&](std::uint64_t block, std::uint64_t sector) {
    words.touch(static_cast<std::int64_t>(block), 0, {{sector * 32, sector * 32 + 32}}, Access::kRead, true);
  };
  for (std::uint64_t block = 0; block < 8000; ++block) {
    if (!sample.takes(block)) continue;
    read(block, 100000 + block / 8);
    read(block, 200000 + block % 8);
    read(block, 300000 + block);
  }
  EXPECT_EQ(words.read_sectors(), 4u + 2 + 8);
  EXPECT_EQ(words.read_sectors_of_grid(), 1000.0 + 8 + 8000);
}

}  // namespace
}  // namespace twinbench::kernels::simt
