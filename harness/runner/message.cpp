// Writing and reading of framed JSON.
#include "harness/runner/message.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr std::string_view kMark = "TWBJ";
constexpr std::size_t kHeaderBytes = 8;

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
  const auto length = static_cast<std::uint32_t>(body.size());
  std::string bytes(kMark);
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((length >> shift) & 0xFFu);
  write_all(descriptor, bytes + body);
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
    if (rest.size() < kHeaderBytes) break;
    std::uint32_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
      length |= static_cast<std::uint32_t>(static_cast<unsigned char>(rest[4 + i])) << (8 * i);
    if (length > kLargestMessage) {
      broken_ = "a message claims " + std::to_string(length) + " bytes";
      break;
    }
    if (rest.size() < kHeaderBytes + length) break;
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
