// The training step's kernels of texts: rows to the encoder; the decoder's loss by words, a block, an integer a word.
#pragma once

#include "kernels/energy_flow/common/words.h"
#include "kernels/energy_flow/train_step/kernel.h"

namespace twinbench::energy_flow::train_step {

// Grid: kernels::striding_blocks(batch, 1).
struct StageTexts {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const StageTextsArguments& a) const {
    const int own = simt::thread_rank(block);
    for (std::int64_t b = block.index().x; b < a.batch; b += block.grid().x) {
      const bool is_there = b < a.rows;
      for (std::int64_t i = own; i < a.most; i += kThreads)
        a.to_token[b * a.most + i] = is_there ? a.token[b * a.most + i] : token_of_no_word(i);
      for (std::int64_t c = own; !is_there && c < a.cells; c += kThreads) a.gradient[b * a.cells + c] = 0.0f;
      if (own > 0) continue;
      a.to_length[b] = is_there ? a.length[b] : kTokensOfNoWord;
      a.to_key[b] = is_there ? a.key[b] : 0;
    }
  }
};

// Grid: one block, so that there is one that adds: a window decodes a few short texts.
struct DecodedLoss {
  static constexpr int kMaxThreads = kThreads;

  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const DecodedLossArguments& a) const {
    double sum = 0;
    for (std::int64_t t = 0; t < a.texts; ++t) {
      const Letters predicted{a.predicted + t * a.room, a.predicted_size[t]},
          wanted{a.wanted + a.wanted_offsets[t], a.wanted_offsets[t + 1] - a.wanted_offsets[t]};
      int only_predicted = 0, only_wanted = 0, both = 0;  // words, each once
      for (std::int64_t i = simt::thread_rank(block); i < predicted.size; i += kThreads) {
        if (!begins_new_word(predicted, i)) continue;
        const bool shared = holds_word(wanted, wanted.size, predicted, i);
        both += shared ? 1 : 0;
        only_predicted += shared ? 0 : 1;
      }
      for (std::int64_t i = simt::thread_rank(block); i < wanted.size; i += kThreads)
        only_wanted += begins_new_word(wanted, i) && !holds_word(predicted, predicted.size, wanted, i) ? 1 : 0;
      both = simt::block_sum(block, both);
      const int either = both + simt::block_sum(block, only_predicted + only_wanted);
      sum += 1.0 - (either > 0 ? static_cast<double>(both) / static_cast<double>(either) : 0.0);
    }
    if (simt::thread_rank(block) == 0) *a.loss = a.texts > 0 ? sum / static_cast<double>(a.texts) : 0.0;
  }
};

}  // namespace twinbench::energy_flow::train_step
