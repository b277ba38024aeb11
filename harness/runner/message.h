// The wire between child and runner: a mark, a length and JSON, so that anything else is told apart from a message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/runner/message_seal.h"

namespace twinbench {

constexpr std::size_t kLargestMessage = std::size_t{256} << 20;  // bytes of JSON

// From here on every message of this process carries a seal made with this key. Once in a child's life.
void seal_messages(const SealKey& key);

// Writes mark ("TWBJ"), length (32 bits, little-endian), seal (64 bits; 0 before seal_messages()) and JSON. Bytes that
// are not UTF-8 are replaced; NaN and Inf become null. Throws Error(kInputOutput) where the pipe is closed and
// Error(kOutOfRange) above kLargestMessage.
void send_message(int descriptor, const nlohmann::json& message);

// Puts messages together from whatever pieces a pipe delivers.
class MessageReader {
 public:
  MessageReader() = default;
  // Anything that is not sealed with this key, in its order, is no message.
  explicit MessageReader(const SealKey& key) : key_(key) {}

  // Takes bytes in; returns the messages they complete. After anything that is no message, broken() says what, and no
  // more is read.
  std::vector<nlohmann::json> take(std::string_view bytes);

  const std::string& broken() const { return broken_; }
  bool in_the_middle() const { return !buffer_.empty(); }  // of a message, at the end of what came so far

 private:
  std::optional<SealKey> key_;
  std::uint64_t taken_ = 0;
  std::string buffer_, broken_;
};

// `text` with every byte that is not UTF-8 replaced, so that it may go into JSON.
std::string valid_utf8(const std::string& text);

}  // namespace twinbench
