// A seal on each message from child to runner: who does not hold the key of this child cannot write one.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace twinbench {

// 128 bits, new for every child.
using SealKey = std::array<std::uint64_t, 2>;

// From the system's generator; throws Error(kInputOutput) where it has none.
SealKey new_seal_key();

// SipHash-2-4 (Aumasson, Bernstein 2012) of the bytes and of the message's place in the series.
std::uint64_t seal_of(const SealKey& key, std::uint64_t place, std::string_view bytes);

}  // namespace twinbench
