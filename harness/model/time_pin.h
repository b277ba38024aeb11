// The pinned modelled time of a cell on a card: how it is written, and what counts as another.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace twinbench::model {

struct TimePin {
  double seconds = 0, floor_share = 0;  // floor_share: what the component's cost takes at the card's ceilings, of that
  std::string limiter;
};

// Rounded, as its constants are known to two or three digits: a pin is not broken by the last digit of an exponential.
nlohmann::json to_json(const TimePin& pin);
// Throws kBadFile that names `place` and the field for anything but what to_json writes.
TimePin time_pin_of(const nlohmann::json& pinned, const std::string& place);

// "" where the two are equal but for rounding, else the card, the limiters and both figures in words. A rise is told
// too: pins change on purpose only.
std::string change_of(const std::string& card, const TimePin& pinned, const TimePin& now);

}  // namespace twinbench::model
