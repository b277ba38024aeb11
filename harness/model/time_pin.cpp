// Pins of modelled times: text, and comparison within rounding.
#include "harness/model/time_pin.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "src/common/error.h"

namespace twinbench::model {
namespace {

constexpr double kShareStep = 1e-3, kSecondsStep = 1e-8;  // what the pin keeps
// A rounding or two, and for long times what the last digits of the model's powers may differ by between machines.
constexpr double kSameShare = kShareStep, kSameSeconds = 2 * kSecondsStep, kSameRelative = 1e-3;

std::string decimal(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

double number_of(const nlohmann::json& pinned, const char* field, const std::string& place) {
  const std::string text = pinned.is_object() && pinned.contains(field) && pinned[field].is_string()
                               ? pinned[field].get<std::string>()
                               : std::string();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool plain = !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;  // strtod takes more
  if (!plain || *end != '\0' || !std::isfinite(value))
    throw Error(ErrorKind::kBadFile, place, std::string(field) + " is missing or no decimal",
                "`twinbench kernels --pin` writes it");
  return value;
}

}  // namespace

nlohmann::json to_json(const TimePin& pin) {
  return {{"microseconds", decimal(pin.seconds * 1e6, 2)},
          {"floor_share", decimal(pin.floor_share, 3)},
          {"limiter", pin.limiter}};
}

TimePin time_pin_of(const nlohmann::json& pinned, const std::string& place) {
  TimePin pin{number_of(pinned, "microseconds", place) * 1e-6, number_of(pinned, "floor_share", place), ""};
  if (pinned.contains("limiter") && pinned["limiter"].is_string()) pin.limiter = pinned["limiter"];
  return pin;
}

std::string change_of(const std::string& card, const TimePin& pinned, const TimePin& now) {
  const double share = now.floor_share - pinned.floor_share, seconds = now.seconds - pinned.seconds;
  if (std::abs(share) <= kSameShare &&
      std::abs(seconds) <= std::max(kSameSeconds, kSameRelative * std::max(now.seconds, pinned.seconds)))
    return "";
  const auto both = [](const std::string& before, const std::string& after) { return before + " -> " + after; };
  const bool slower = std::abs(share) > kSameShare ? share < 0 : seconds > 0;
  const std::string limiter =
      pinned.limiter == now.limiter ? now.limiter : both("(" + pinned.limiter + ")", "(" + now.limiter + ")");
  return "modelled on " + card + ": floor / modelled " + (slower ? "fell " : "rose ") +
         both(decimal(pinned.floor_share, 3), decimal(now.floor_share, 3)) + ", " +
         both(decimal(pinned.seconds * 1e6, 2), decimal(now.seconds * 1e6, 2)) + " us, limited by " + limiter +
         (slower ? "" : "; pin it anew on purpose");
}

}  // namespace twinbench::model
