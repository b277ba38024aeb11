// A choice among ways to do the same that a variant makes at set-up: told to who watches, and made for it on demand.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace twinbench {

// Which way was taken of those there are, and why: "measured: 12.1 us; library products 14.0 us".
struct Choice {
  std::string of;  // what is done, with its shape: "layer of 256 flows, width 512"
  std::vector<std::string> ways;
  std::string taken, why;
};

// While one lives, on its thread: notes the choices of every set-up. With `way`, choices that have a way of that name
// take it, so that an engine can compare ways. Watches do not nest.
class ChoiceWatch {
 public:
  explicit ChoiceWatch(std::optional<std::string> way = {});
  ~ChoiceWatch();
  ChoiceWatch(const ChoiceWatch&) = delete;
  ChoiceWatch& operator=(const ChoiceWatch&) = delete;

  const std::vector<Choice>& made() const { return made_; }

 private:
  friend void announce_choice(const Choice& choice);
  friend std::optional<std::string> demanded_way();

  std::optional<std::string> way_;
  std::vector<Choice> made_;
};

// For who chooses: what this thread's watch demands, and what it is told.
std::optional<std::string> demanded_way();
void announce_choice(const Choice& choice);

}  // namespace twinbench
