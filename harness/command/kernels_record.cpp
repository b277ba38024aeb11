// Rows of the record's section "modelled".
#include "harness/command/kernels_record.h"

namespace twinbench {
namespace {

using nlohmann::json;

const json* pinned_time(const kernels::simt::CountsFile& pins, const std::string& cell, const std::string& card) {
  const auto found = pins.cells().find(cell);
  if (found == pins.cells().end()) return nullptr;
  const auto time = found->second.find(kernels::simt::kNoCount + card);
  return time == found->second.end() || time->contains("unknown") ? nullptr : &*time;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

std::string not_known(const CellTime& time) {
  return "the machine code of " + joined(time.unknown) + " is not pinned: run ci/kernel_sass.py --pin";
}

std::string change_of(const kernels::simt::CountsFile& pins, const std::string& cell, const CellTime& time) {
  const json* pinned = pinned_time(pins, cell, time.card);
  if (pinned == nullptr) return "";  // a new cell: its counts are not pinned either
  if (!time.unknown.empty()) return "modelled on " + time.card + ": pinned, and unknown now: " + not_known(time);
  return model::change_of(time.card, model::time_pin_of(*pinned, cell), pin_of(time));
}

json row_of(const kernels::simt::CountsFile& pins, const model::Card& card, const std::string& cell) {
  json row = {{"cell", cell},       {"card", card.name},  {"device_names", card.device_names},
              {"seconds", nullptr}, {"floor_s", nullptr}, {"floor_share", nullptr},
              {"limiter", ""},      {"pinned", nullptr},  {"verdict", "pass"},
              {"reason", ""}};
  if (const json* pinned = pinned_time(pins, cell, card.name)) {
    const model::TimePin pin = model::time_pin_of(*pinned, cell);
    row["pinned"] = {{"seconds", pin.seconds}, {"floor_share", pin.floor_share}, {"limiter", pin.limiter}};
  }
  return row;
}

}  // namespace

model::TimePin pin_of(const CellTime& time) {
  return {time.seconds, time.seconds > 0 ? time.floor / time.seconds : 0, time.limiter};
}

std::vector<std::string> changed_times(const kernels::simt::CountsFile& pins, const std::string& cell,
                                       const std::vector<CellTime>& times) {
  std::vector<std::string> texts;
  for (const CellTime& time : times)
    if (std::string text = change_of(pins, cell, time); !text.empty()) texts.push_back(cell + ": " + std::move(text));
  return texts;
}

void add_modelled(Record& record, Ledger& ledger, const kernels::simt::CountsFile& pins,
                  const std::vector<model::Card>& cards, const std::string& cell, const std::vector<CellTime>& times,
                  const std::vector<std::string>& failures, const std::string& error) {
  for (std::size_t i = 0; i < cards.size(); ++i) {
    json row = row_of(pins, cards[i], cell);
    const std::string name = cell + " on " + cards[i].name;
    const auto end = [&](Outcome outcome, const std::string& reason) {
      row["verdict"] = name_of(outcome);
      row["reason"] = reason;
      ledger.record(name, outcome, reason);
    };
    if (!error.empty()) {
      end(Outcome::kError, error);
    } else {
      const CellTime& time = times[i];
      if (time.unknown.empty()) {
        const model::TimePin now = pin_of(time);
        row["seconds"] = now.seconds;
        row["floor_s"] = time.floor;
        row["floor_share"] = now.floor_share;
        row["limiter"] = now.limiter;
      }
      std::vector<std::string> all = {change_of(pins, cell, time)};
      if (all.front().empty()) all.clear();
      all.insert(all.end(), failures.begin(), failures.end());
      if (!all.empty())
        end(Outcome::kFail, joined(all));
      else if (!time.unknown.empty())
        end(Outcome::kSkip, not_known(time));
      else
        end(Outcome::kPass, "");
    }
    record.add("modelled", std::move(row));
  }
}

}  // namespace twinbench
