// What orders blocks of one launch: fence, then an atomic update of a word, then another block's update of it and
// fence.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

namespace twinbench::kernels::simt {

// Times are a block's own: they grow at its barriers and fences. Warps stand for threads: within one, order is judged
// as the code has it.
class BlockOrder {
 public:
  void begin_launch();
  void begin_block(std::uint32_t block) { ++blocks_[block].turns; }

  // Of what the warp does now.
  std::uint32_t stamp(std::uint32_t block, int warp);
  void pass_barrier(std::uint32_t block);
  void fence(std::uint32_t block, int warp);
  void update(std::uint32_t block, int warp, std::uint64_t address);
  // All of these have met: what any did before is ordered before what all do from now on.
  void join(std::uint32_t first, std::uint32_t count);

  // Whether what `earlier` did at `stamp` is ordered before what `block` does now.
  bool is_ordered(std::uint32_t earlier, std::uint32_t stamp, std::uint32_t block) const;
  bool has_acquired(std::uint32_t earlier, std::uint32_t block) const;  // anything at all
  bool has_acquired_all(std::uint32_t block) const;                     // from every block that has run

 private:
  // What a release hands over of a block: everything before its barrier, and of single warps what precedes their fence.
  struct Coverage {
    std::uint32_t all_before = 0;
    std::map<int, std::uint32_t> warp_before;
    void add(const Coverage& other);
  };
  struct Fence {
    std::uint32_t time = 0, all_before = 0;
  };
  struct Seen {
    std::uint32_t block;
    Coverage coverage;
  };
  struct Block {
    std::uint32_t turns = 0, time = 1, barrier = 1;
    std::map<int, Fence> fences;                             // by warp: the last
    std::vector<std::pair<std::uint64_t, std::size_t>> met;  // words updated since the last fence: releases seen
    std::unordered_map<std::uint32_t, Coverage> acquired;
  };

  std::unordered_map<std::uint32_t, Block> blocks_;
  std::unordered_map<std::uint64_t, std::vector<Seen>> releases_;  // by word
};

}  // namespace twinbench::kernels::simt
