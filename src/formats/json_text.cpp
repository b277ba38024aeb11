// A pass over the text that builds nothing. Not a callback of the parser: that one looks through all of an object's
// values after each of them, which takes minutes for 80,000.
#include "src/formats/json_text.h"

#include <limits>
#include <set>
#include <vector>

namespace twinbench {
namespace {

class Reader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Reader(const JsonRules& rules) : rules_(rules) {}
  const std::string& fault() const { return fault_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t value) override {
    return value <= rules_.largest || too_large(std::to_string(value), rules_.largest);
  }
  // A whole number that 64 bits do not hold comes here, rounded.
  bool number_float(double value, const std::string& text) override {
    if (text.find_first_of(".eE") != std::string::npos) return true;
    return value < 0 ? too_large(text, std::numeric_limits<std::int64_t>::min()) : too_large(text, rules_.largest);
  }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    open_.emplace_back();
    return deeper();
  }
  bool key(std::string& name) override {
    open_.back().last = name;
    if (open_.back().keys.insert(name).second) return true;
    fault_ = "the key " + place() + " appears twice; a key may appear once";
    return false;
  }
  bool end_object() override {
    open_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    fault_ = std::string("not JSON: ") + error.what();
    return false;
  }

 private:
  struct Object {
    std::set<std::string> keys;
    std::string last;
  };
  // "cells a.b/baseline/cpu/fp32/tiny dispatches"
  std::string place() const {
    std::string text;
    for (const auto& object : open_) text += (text.empty() ? "" : " ") + object.last;
    return text;
  }
  template <class Limit>
  bool too_large(const std::string& number, Limit limit) {
    fault_ = "the number " + number.substr(0, 40) + (open_.empty() ? "" : " of " + place()) + " is beyond " +
             std::to_string(limit);
    return false;
  }
  bool deeper() {
    if (++depth_ <= rules_.deepest) return true;
    fault_ = "nested more than " + std::to_string(rules_.deepest) + " deep";
    return false;
  }

  const JsonRules rules_;
  int depth_ = 0;
  std::vector<Object> open_;
  std::string fault_;
};

}  // namespace

std::string json_fault(std::string_view text, const JsonRules& rules) {
  Reader reader(rules);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.fault();
}

}  // namespace twinbench
