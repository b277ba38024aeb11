// The texts of a training run's pairs as the component takes them: a vocabulary of the pairs' own words, inputs as
// tokens, targets as bytes; those of a window where the component reads them anew.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/energy_flow/dataset_pairs.h"
#include "src/named_tensors.h"
#include "src/setting.h"

namespace twinbench::energy_flow {

class TrainingTexts {
 public:
  // Of the first `pairs`. Throws kOutOfRange where the dataset's pairs have no texts.
  TrainingTexts(const DatasetPairs& of, std::int64_t pairs, const Setting& setting);

  // On the CPU: the vocabulary's words, and the texts of the first `rows` pairs, of so many as there are, with room for
  // those of any window.
  NamedTensors inputs(std::int64_t rows) const;
  // Into tensors as inputs() made them, the pairs of those numbers: into the first `rows` rows. Those after them, which
  // a window may lack, want nothing.
  void stage(const std::int64_t* pair, std::int64_t rows, const NamedTensors& to) const;

 private:
  const std::int64_t most_;                     // tokens of a text
  std::vector<std::int32_t> tokens_, lengths_;  // [pairs, most], [pairs]
  std::vector<std::string> wanted_;
  std::string bytes_;                  // of the vocabulary's words
  std::vector<std::int64_t> offsets_;  // where each begins; the ids below kFirstWord have none
};

}  // namespace twinbench::energy_flow
