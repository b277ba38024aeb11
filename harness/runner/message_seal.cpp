// SipHash-2-4 over a message and its number.
#include "harness/runner/message_seal.h"

#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <cstring>

#include "src/common/error.h"

namespace twinbench {
namespace {

struct SipState {
  std::uint64_t a, b, c, d;
  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }
  void take(std::uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
};

}  // namespace

SealKey new_seal_key() {
  SealKey key;
  if (getrandom(key.data(), sizeof key, 0) != static_cast<ssize_t>(sizeof key))
    throw Error(ErrorKind::kInputOutput, "getrandom", std::strerror(errno), "the system gives no random bytes");
  return key;
}

std::uint64_t seal_of(const SealKey& key, std::uint64_t place, std::string_view bytes) {
  SipState state{key[0] ^ 0x736f6d6570736575ull, key[1] ^ 0x646f72616e646f6dull, key[0] ^ 0x6c7967656e657261ull,
                 key[1] ^ 0x7465646279746573ull};
  state.take(place);
  const std::uint64_t total = sizeof place + bytes.size();
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    state.take(word);
  }
  std::uint64_t last = total << 56;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    last |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  state.take(last);
  state.c ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace twinbench
