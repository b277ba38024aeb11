// The record of who touched a word, and the rule by which two blocks conflict.
#include "harness/simt/counting/block_words.h"

#include <algorithm>

namespace twinbench::kernels::simt {
namespace {

constexpr std::uint32_t kMany = 0x7fffffff, kAtomic = 0x80000000;

}  // namespace

void BlockWords::begin_launch(const BlockSample& sample) {
  sample_ = sample;
  line_of_.clear();
  lines_.clear();
  order_.begin_launch();
  read_sectors_ = written_sectors_ = 0;
}

// True where the block conflicts with what others did.
bool BlockWords::touch_word(Word& word, std::uint32_t& stamp, std::uint32_t block, std::uint32_t now, Access access,
                            Conflict& conflict) {
  const std::uint32_t writer = word.writer & ~kAtomic;
  const bool both_atomic = access == Access::kAtomic && (word.writer & kAtomic) != 0;
  bool after_write = writer != 0 && writer != block && !both_atomic;
  bool after_read = access != Access::kRead && word.reader != 0 && word.reader != block;
  if (after_write)
    after_write = !(writer == kMany ? order_.has_acquired_all(block) : order_.is_ordered(writer, stamp, block));
  if (after_read)
    after_read = !(word.reader == kMany ? order_.has_acquired_all(block) : order_.has_acquired(word.reader, block));
  if (after_write || after_read) {
    const std::uint32_t other = after_write ? writer : word.reader;
    conflict.other_block = other == kMany ? -1 : static_cast<std::int64_t>(other) - 1;
    conflict.other_wrote = after_write;
  }
  if (access == Access::kRead)
    word.reader = word.reader == 0 || word.reader == block ? block : kMany;
  else if (access == Access::kWrite)
    word.writer = block, stamp = now;
  else
    stamp = now, word.writer = (writer == 0 || writer == block ? block : kMany) | kAtomic;
  return after_write || after_read;
}

BlockWords::Conflict BlockWords::touch(std::int64_t block, int warp, const std::vector<Interval>& touched,
                                       Access access, bool judged) {
  Conflict conflict;
  const auto who = static_cast<std::uint32_t>(block + 1);
  const std::uint32_t now = order_.stamp(who, warp);
  if (access == Access::kAtomic)
    for (const Interval& interval : touched)
      for (std::uint64_t at = interval.begin / 4 * 4; at < interval.end; at += 4) order_.update(who, warp, at);
  for (const Interval& interval : touched) {
    std::uint64_t at = interval.begin / kWordBytes * kWordBytes;
    while (at < interval.end) {
      std::uint32_t& index = line_of_[at / kLineBytes];
      if (index == 0) {
        lines_.emplace_back();
        index = static_cast<std::uint32_t>(lines_.size());
      }
      Line& line = lines_[index - 1];
      const std::uint64_t line_end = (at / kLineBytes + 1) * kLineBytes, end = std::min(interval.end, line_end);
      for (std::uint64_t sector = at / kSectorBytes; sector <= (end - 1) / kSectorBytes; ++sector) {
        const std::size_t s = sector % (kLineBytes / kSectorBytes);
        if (access != Access::kWrite && !line.written[s] && !line.read[s])
          line.read[s] = true, line.first_reader[s] = who - 1, ++read_sectors_;
        else if (access != Access::kWrite && line.read[s] && line.first_reader[s] != who - 1)
          line.shared_axes[s] |= static_cast<std::uint8_t>(sample_.axes_between(line.first_reader[s], who - 1));
        if (access != Access::kRead && !line.written[s]) line.written[s] = true, ++written_sectors_;
      }
      for (; at < end; at += kWordBytes) {
        const std::size_t word = at % kLineBytes / kWordBytes;
        if (!judged || !touch_word(line.words[word], line.stamps[word], who, now, access, conflict)) continue;
        if (!conflict.found) conflict.address = at;
        conflict.found = true;
      }
    }
  }
  return conflict;
}

double BlockWords::read_sectors_of_grid() const {
  if (sample_.is_whole()) return static_cast<double>(read_sectors_);
  std::array<std::uint64_t, 8> counts{};  // by shared axes
  for (const Line& line : lines_)
    for (std::size_t s = 0; s < line.read.size(); ++s) counts[line.shared_axes[s]] += line.read[s] ? 1 : 0;
  double sectors = 0;
  for (unsigned axes = 0; axes < counts.size(); ++axes)
    sectors += static_cast<double>(counts[axes]) * sample_.stands_for(axes);
  return sectors;
}

}  // namespace twinbench::kernels::simt
