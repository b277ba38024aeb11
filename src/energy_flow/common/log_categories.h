// The categories of log messages (C28): numbers as the documents have them, names, and which ones a profile turns on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/common/error.h"

namespace twinbench::energy_flow {

// Numbers of categories, no severities: above 19 is no more urgent than below.
struct LogCategory {
  std::int64_t id;
  const char* name;
};
inline constexpr std::int64_t kBasicMetrics = 0;  // on in every profile
inline constexpr LogCategory kLogCategories[] = {
    {kBasicMetrics, "METRICS"},
    {11, "VERBOSE"},
    {12, "CACHE"},
    {13, "SPATIAL"},
    {14, "FORWARD"},
    {15, "MEMORY"},
    {16, "TRAINING"},
    {17, "INIT"},
    {18, "ENERGY"},
    {19, "SPAWN"},
    {20, "CONVERGENCE"},
    {21, "PERFORMANCE"},
    {22, "PROFILING"},
    {23, "RELATIVE"},
    {24, "SPAWN_MOVEMENT"},
    {25, "REFLECTION"},
    {26, "IMPORTANCE"},
};
inline constexpr std::int64_t kInfo = 20;  // of the usual severities, which the documents compare the numbers with

inline std::vector<std::string> log_profiles() { return {"production", "training", "performance", "profiling"}; }

// Throws kUnknownName.
inline std::vector<std::int64_t> categories_of_profile(const std::string& profile) {
  if (profile == "production") return {kBasicMetrics};
  if (profile == "training") return {kBasicMetrics, 16};
  if (profile == "performance") return {kBasicMetrics, 16, 21};
  if (profile == "profiling") return {kBasicMetrics, 16, 21, 22, 15};
  throw Error(ErrorKind::kUnknownName, "log_profile", profile, "production, training, performance or profiling");
}

// Throws kUnknownName.
inline const char* category_name(std::int64_t id) {
  for (const LogCategory& one : kLogCategories)
    if (one.id == id) return one.name;
  throw Error(ErrorKind::kUnknownName, "category", std::to_string(id), "0, or 11 to 26");
}

constexpr std::int64_t kStepMissing = INT64_MIN;  // a call that does not say its step
constexpr std::int64_t kLineBytes = 80;           // of a line; what is beyond is cut off

// Steps are counted over the whole run: one that starts anew with every forward would never leave the first few. Throws
// kOutOfRange.
[[noreturn]] inline void refuse_step(std::int64_t step, std::int64_t last) {
  if (step == kStepMissing)
    throw Error(ErrorKind::kOutOfRange, "advance", "no step", "a gated message says the number of its training step");
  throw Error(ErrorKind::kOutOfRange, "advance", "step " + std::to_string(step) + " after " + std::to_string(last),
              "steps never fall: take the number of the optimizer's window, not of the flow step");
}

// What a message is about, by its place in a step.
inline std::string message_key(std::int64_t message) {
  static const char* const kKeys[] = {"total loss",   "surface mean",  "surface deviation", "energy loss",
                                      "encoder loss", "decoder loss",  "text loss",         "gradient norm",
                                      "active flows", "spawned flows", "reached flows",     "convergence step"};
  constexpr std::int64_t kCount = std::size(kKeys);
  return message < kCount ? kKeys[message] : "norm of tensor " + std::to_string(message - kCount);
}

}  // namespace twinbench::energy_flow
