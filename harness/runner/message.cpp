// Writing and reading of framed JSON.
#include "harness/runner/message.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::string_view kMark = "TWBJ";
constexpr std::size_t kSealAt = 8, kHeaderBytes = 16;

// Of this process: a child has one runner.
std::optional<SealKey> own_key;
std::uint64_t sent = 0;
std::mutex sending;

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < count; ++i)
    number |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return number;
}

void append_number(std::string& bytes, std::uint64_t number, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>((number >> (8 * i)) & 0xFFu);
}

void write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw Error(ErrorKind::kInputOutput, "result pipe", std::strerror(errno), "the runner at the other end has gone");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void send_message(int descriptor, const nlohmann::json& message) {
  const std::string body = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (body.size() > kLargestMessage)
    throw Error(ErrorKind::kOutOfRange, "message", std::to_string(body.size()) + " bytes",
                "return at most " + std::to_string(kLargestMessage) + " bytes of JSON");
  const std::lock_guard lock(sending);
  std::string bytes(kMark);
  append_number(bytes, body.size(), 4);
  append_number(bytes, own_key ? seal_of(*own_key, sent++, body) : 0, 8);
  write_all(descriptor, bytes + body);
}

void seal_messages(const SealKey& key) {
  own_key = key;
  sent = 0;
}

std::vector<nlohmann::json> MessageReader::take(std::string_view bytes) {
  std::vector<nlohmann::json> messages;
  if (!broken_.empty()) return messages;
  buffer_ += bytes;
  std::size_t start = 0;
  for (;;) {
    const std::string_view rest = std::string_view(buffer_).substr(start);
    const std::size_t seen = std::min(rest.size(), kMark.size());
    if (rest.substr(0, seen) != kMark.substr(0, seen)) {
      broken_ = "something that is no message was written to the result pipe";
      break;
    }
    if (rest.size() < kSealAt) break;
    const auto length = static_cast<std::size_t>(number_at(rest, kMark.size(), 4));
    if (length > kLargestMessage) {
      broken_ = "a message claims " + std::to_string(length) + " bytes";
      break;
    }
    if (rest.size() < kHeaderBytes + length) break;
    if (key_ && seal_of(*key_, taken_, rest.substr(kHeaderBytes, length)) != number_at(rest, kSealAt, 8)) {
      broken_ = "a message was not written by this child's job: its seal is another";
      break;
    }
    ++taken_;
    nlohmann::json message = nlohmann::json::parse(rest.substr(kHeaderBytes, length), nullptr, false);
    if (!message.is_object() || !message.contains("kind") || !message["kind"].is_string()) {
      broken_ = "a message is not JSON of a known kind";
      break;
    }
    messages.push_back(std::move(message));
    start += kHeaderBytes + length;
  }
  buffer_.erase(0, start);
  return messages;
}

std::string valid_utf8(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

}  // namespace twinbench
