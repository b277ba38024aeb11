// Texts as tensors name them, one behind the other: <name>_bytes, uint8, and <name>_offsets, int64, one more entry.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/error.h"
#include "src/named_tensors.h"

namespace twinbench::energy_flow {

// Reads the tensors' own memory, as it is when a text is asked for.
class TextList {
 public:
  // Throws kCorrupt where the offsets fall or leave the bytes.
  TextList(const NamedTensors& inputs, const std::string& name)
      : bytes_(inputs[name + "_bytes"].cpu().contiguous()), offsets_(inputs[name + "_offsets"].cpu().contiguous()) {
    for (std::int64_t i = 0; i < offsets_.numel(); ++i)
      if (end(i) < 0 || end(i) > bytes_.numel() || (i > 0 && end(i) < end(i - 1)))
        throw Error(ErrorKind::kCorrupt, name + "_offsets", "entry " + std::to_string(i),
                    "they must not fall or leave " + name + "_bytes");
  }

  // In the host's own memory: for who runs where tensors lie on a card, and texts do not.
  TextList copied() const {
    TextList copy = *this;
    copy.own_letters_.assign(letters(), letters() + bytes_.numel());
    copy.own_ends_.assign(ends(), ends() + offsets_.numel());
    return copy;
  }

  std::int64_t size() const { return offsets_.numel() - 1; }
  std::int64_t bytes() const { return bytes_.numel(); }
  std::string_view operator[](std::int64_t text) const {
    return {letters() + end(text), static_cast<std::size_t>(end(text + 1) - end(text))};
  }

 private:
  std::int64_t end(std::int64_t index) const { return ends()[index]; }
  const std::int64_t* ends() const {
    return own_ends_.empty() ? offsets_.const_data_ptr<std::int64_t>() : own_ends_.data();
  }
  const char* letters() const {
    return own_ends_.empty() ? reinterpret_cast<const char*>(bytes_.const_data_ptr<std::uint8_t>())
                             : own_letters_.data();
  }

  at::Tensor bytes_, offsets_;
  std::vector<char> own_letters_;
  std::vector<std::int64_t> own_ends_;  // empty: not copied
};

}  // namespace twinbench::energy_flow
