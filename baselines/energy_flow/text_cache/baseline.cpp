// Baseline of energy_flow.text_cache: lists and maps of tensors. A row is cloned to be kept and cloned again for every
// hit, rows are stacked one by one, a surface is found by a sum that the host reads, and whatever is encoded is kept
// the other way round as well, without a limit.
#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <unordered_map>

#include "baselines/energy_flow/common/recent.h"
#include "src/common/forward_call.h"
#include "src/component.h"
#include "src/energy_flow/common/cached_text.h"
#include "src/energy_flow/common/sentence_pairs.h"

namespace twinbench::energy_flow::text_cache {
namespace {

struct Ids {
  at::Tensor values;
};
struct Row {
  std::int64_t number = 0, version = 0;  // of the text; of the parameters
  at::Tensor values;                     // undefined while its batch is being encoded:
  std::int64_t miss = 0;                 // as which of that batch's
};
struct Said {
  std::int64_t number = 0, sum = 0;  // of the surface
  at::Tensor surface;
  std::string text;
};

class Baseline final : public Runnable {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        setting_(setting),
        enabled_(setting.on("text_cache_enabled")),
        by_sum_(setting.on("surface_sum_key")),
        vocabulary_(cached_vocabulary(inputs, setting)),
        pool_(inputs, "pool"),
        ids_(setting.size("limit")),
        rows_(setting.size("limit")),
        said_(setting.size("limit")) {
    for (const char* name : {"request", "version", "asked", "kept", "kept_version", "kept_surface"})
      inputs_.set(name, inputs[name].cpu().contiguous());
    const std::int64_t requests = setting.size("requests"), batch = setting.size("batch");
    token_ = at::zeros({requests, batch, setting.size("tokens")}, at::kInt);
    row_ = at::zeros({requests, batch, setting.size("cells")}, inputs["surface"].options());
    Baseline::reset();
  }

  // What runs have kept goes when the next one begins: in training nothing comes between two batches.
  void reset() override {
    for (auto& [key, one] : ids_.entries()) discarded_.push_back(one.values);
    for (auto& [key, one] : rows_.entries()) discarded_.push_back(one.values);
    for (auto& [key, one] : said_.entries()) discarded_.push_back(one.surface);
    std::erase_if(discarded_, [&](const at::Tensor& one) { return restored_.count(one.unsafeGetTensorImpl()) > 0; });
    restored_.clear();
    ids_.clear(), rows_.clear(), said_.clear(), reverse_.clear(), next_ = 0;
    restore();
  }

  void run() override {
    discarded_.clear();
    ids_.restart_counts(), rows_.restart_counts(), said_.restart_counts();
    texts_.clear();
    for (std::int64_t r = 0; r < setting_.size("requests"); ++r) {
      if (setting_.size("batch") > 0) answer_batch(r);
      for (std::int64_t i = 0; i < setting_.size("asking"); ++i)
        texts_.push_back(text_of_surface(integer("asked", r * setting_.size("asking") + i)));
    }
  }

  NamedTensors outputs() override {
    NamedTensors outputs{{"token", token_}, {"row", row_}};
    const at::Tensor counts = at::empty({kCacheLevels, kCacheCounts}, at::kLong);
    std::int64_t* count = counts.mutable_data_ptr<std::int64_t>();
    const auto add = [&](const auto& of) { *count++ = of.hits, *count++ = of.misses, *count++ = of.evictions; };
    add(ids_), add(rows_), add(said_);
    outputs.set("counts", counts);
    for (const char* name : {"kept", "kept_version", "kept_surface"})
      outputs.set(name, enabled_ ? at::full({setting_.size("limit")}, -1, at::kLong) : inputs_[name].clone());
    const auto place = [&](const char* name) { return outputs[name].mutable_data_ptr<std::int64_t>(); };
    std::int64_t *kept = place("kept"), *version = place("kept_version"), *surface = place("kept_surface"), bytes = 0;
    for (const auto& [text, row] : rows_.entries()) {
      *kept++ = row.number, *version++ = row.version;
      bytes += static_cast<std::int64_t>(row.values.nbytes());
    }
    for (const auto& [key, said] : said_.entries()) *surface++ = said.number;
    set_texts(outputs, texts_);
    outputs.set("device_bytes", at::full({1}, bytes, at::kLong));
    outputs.set("unlimited", at::full({1}, static_cast<std::int64_t>(reverse_.size()), at::kLong));
    return outputs;
  }

 private:
  std::int64_t integer(const char* name, std::int64_t place) const {
    return inputs_[name].const_data_ptr<std::int64_t>()[place];
  }
  std::string text(std::int64_t number) const { return std::string(pool_[number]); }

  at::Tensor restored(const at::Tensor& one) {
    restored_.emplace(one.unsafeGetTensorImpl(), one);
    return one;
  }

  // What the state says was kept before the first batch.
  void restore() {
    for (std::int64_t i = 0; enabled_ && i < setting_.size("limit"); ++i) {
      if (const std::int64_t one = integer("kept", i); one >= 0) {
        const at::Tensor ids = tokens(text(one));
        const std::int64_t version = integer("kept_version", i);
        ids_.put(text(one), {restored(ids)});
        rows_.put(text(one), {one, version, restored(encoded({ids}, version)[0].clone())});
      }
      if (const std::int64_t one = integer("kept_surface", i); one >= 0) {
        const at::Tensor surface = inputs_["surface"][one].clone();
        const std::int64_t sum = rounded_sum(surface);
        if (!known(surface, sum, false)) said_.put(next_++, {one, sum, restored(surface), spoken(surface)});
      }
    }
  }

  at::Tensor tokens(const std::string& of) const {
    const at::Tensor ids = at::zeros({setting_.size("tokens")}, at::kInt);
    write_tokens(of, vocabulary_, setting_.size("tokens"), ids.mutable_data_ptr<std::int32_t>());
    return ids;
  }

  // [texts, cells], all at once.
  at::Tensor encoded(const std::vector<at::Tensor>& ids, std::int64_t version) const {
    const at::Tensor token = at::stack(ids), &embedding = inputs_["embedding"],
                     there = token.ne(kPadToken).to(embedding.scalar_type()),
                     each = embedding.index_select(0, token.view({-1})).view({token.size(0), token.size(1), -1});
    const at::Tensor mean = each.mul(there.unsqueeze(2)).sum(1).div(there.sum(1, /*keepdim=*/true));
    return mean.mul(inputs_["version_gain"].select(0, version)).tanh();
  }

  // Each text's row is there, or is the batch's miss of that number.
  void answer_batch(std::int64_t r) {
    const std::int64_t batch = setting_.size("batch"), version = integer("version", r);
    std::vector<at::Tensor> ids, missing, rows(static_cast<std::size_t>(batch));
    std::vector<std::int64_t> miss(static_cast<std::size_t>(batch), -1);
    std::vector<std::string> texts;
    for (std::int64_t i = 0; i < batch; ++i) {
      const std::int64_t number = integer("request", r * batch + i);
      const std::string one = text(number);
      ids.push_back(ids_of(one));
      Row* const kept = enabled_ ? rows_.use(one) : nullptr;
      const bool hit = kept && kept->version == version;
      ++(hit ? rows_.hits : rows_.misses);
      const auto at = static_cast<std::size_t>(i);
      if (hit && kept->values.defined()) {
        rows[at] = kept->values.clone();
      } else if (hit) {
        miss[at] = kept->miss;
      } else {
        miss[at] = static_cast<std::int64_t>(missing.size());
        if (enabled_) rows_.put(one, {number, version, {}, miss[at]});
        missing.push_back(ids.back());
        texts.push_back(one);
      }
    }
    if (!missing.empty()) {
      const at::Tensor made = encoded(missing, version);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        announce_forward_call("energy_flow.encoded_text");
        if (enabled_) keep(texts[i], made.select(0, static_cast<std::int64_t>(i)), static_cast<std::int64_t>(i));
      }
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (miss[i] >= 0) rows[i] = made.select(0, miss[i]);
    }
    at::Tensor token_out = token_[r], row_out = row_[r];
    at::stack_out(token_out, ids);
    at::stack_out(row_out, rows);
  }

  at::Tensor ids_of(const std::string& one) {
    if (const Ids* const known = enabled_ ? ids_.use(one) : nullptr) {
      ++ids_.hits;
      return known->values;
    }
    ++ids_.misses;
    const at::Tensor made = tokens(one);
    if (enabled_) ids_.put(one, {made});
    return made;
  }

  void keep(const std::string& of, const at::Tensor& row, std::int64_t miss) {
    reverse_[rounded_sum(row)] = of;
    Row* const kept = rows_.look(of);  // none where the batch has pushed it out again
    if (kept && !kept->values.defined() && kept->miss == miss) kept->values = row.clone();
  }

  static std::int64_t rounded_sum(const at::Tensor& of) { return std::llround(of.sum().item<double>() * 1e4); }

  // A word for each part.
  std::string spoken(const at::Tensor& surface) const {
    const at::Tensor largest = surface.view({setting_.size("spoken"), setting_.size("part")}).argmax(1);
    std::string said;
    for (std::int64_t i = 0; i < largest.numel(); ++i)
      said += (i > 0 ? " " : "") +
              vocabulary_.word(kFirstWord + static_cast<std::int32_t>(largest.const_data_ptr<std::int64_t>()[i] %
                                                                      (vocabulary_.size() - kFirstWord)));
    return said;
  }

  // What is kept of an equal surface, which becomes the most recent one; null: nothing is.
  const Said* known(const at::Tensor& surface, std::int64_t sum, bool by_sum) {
    for (const auto& [key, kept] : said_.entries())
      if (kept.sum == sum && (by_sum || at::equal(kept.surface, surface))) return said_.use(key);
    return nullptr;
  }

  std::string text_of_surface(std::int64_t number) {
    const at::Tensor surface = inputs_["surface"][number];
    const std::int64_t sum = enabled_ ? rounded_sum(surface) : 0;
    if (const Said* const one = known(surface, sum, by_sum_)) {
      ++said_.hits;
      return one->text;
    }
    ++said_.misses;
    std::string text = spoken(surface);
    if (enabled_) said_.put(next_++, {number, sum, surface.clone(), text});
    return text;
  }

  NamedTensors inputs_;
  const Setting setting_;
  const bool enabled_, by_sum_;
  const Vocabulary vocabulary_;
  const TextList pool_;
  Recent<std::string, Ids> ids_;
  Recent<std::string, Row> rows_;
  Recent<std::int64_t, Said> said_;
  std::unordered_map<const at::TensorImpl*, at::Tensor> restored_;  // of what is kept, that which no run has made
  std::vector<at::Tensor> discarded_;
  std::int64_t next_ = 0;                                  // key of the next surface
  std::unordered_map<std::int64_t, std::string> reverse_;  // texts by their rows' sums: no limit
  at::Tensor token_, row_;
  std::vector<std::string> texts_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::text_cache
