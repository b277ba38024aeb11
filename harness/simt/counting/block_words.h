// Which blocks of a launch touched which words of global memory: races between blocks, and the least it moves.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "harness/simt/counting/block_order.h"
#include "harness/simt/counting/block_sample.h"
#include "harness/simt/counting/flat_map.h"
#include "harness/simt/counting/warp_request.h"
#include "harness/simt/shared_memory.h"

namespace twinbench::kernels::simt {

class BlockWords {
 public:
  struct Conflict {
    bool found = false;
    std::uint64_t address = 0;
    std::int64_t other_block = -1;  // -1: several
    bool other_wrote = false;
  };

  void begin_launch(const BlockSample& sample);
  // Two blocks that touch a word, not both atomically and not both reading, conflict unless a handover or a barrier of
  // both orders them. Words are two bytes; accesses of single bytes are not judged.
  Conflict touch(std::int64_t block, int warp, const std::vector<Interval>& touched, Access access, bool judged);
  BlockOrder& order() { return order_; }

  // Sectors that the launch read without having written them, and that it wrote: what memory moves at least.
  std::uint64_t read_sectors() const { return read_sectors_; }
  std::uint64_t written_sectors() const { return written_sectors_; }
  // What the whole grid reads, each sector once, if the sample of its blocks stands for all: what blocks share along an
  // axis of the grid they share with the ones between, too.
  double read_sectors_of_grid() const;

 private:
  static constexpr std::uint64_t kLineBytes = 64, kWordBytes = 2;
  struct Word {
    std::uint32_t writer = 0, reader = 0;  // block + 1; kMany
    bool operator==(const Word&) const = default;
  };
  struct Line {
    std::array<Word, kLineBytes / kWordBytes> words{};
    std::array<std::uint32_t, kLineBytes / kWordBytes> stamps{};  // of the last writes
    std::array<bool, kLineBytes / kSectorBytes> read{}, written{};
    std::array<std::uint32_t, kLineBytes / kSectorBytes> first_reader{};  // block
    std::array<std::uint8_t, kLineBytes / kSectorBytes> shared_axes{};    // along which its readers differ
  };

  bool touch_word(Word& word, std::uint32_t& stamp, std::uint32_t block, std::uint32_t now, Access access,
                  Conflict& conflict);

  BlockOrder order_;
  BlockSample sample_;
  FlatMap<std::uint32_t> line_of_;  // address / 64 -> index into lines_ + 1
  std::vector<Line> lines_;
  std::uint64_t read_sectors_ = 0, written_sectors_ = 0;
};

}  // namespace twinbench::kernels::simt
