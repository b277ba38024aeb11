// A pass over the text that builds nothing. Not a callback of the parser: that one looks through all of an object's
// values after each of them, which takes minutes for 80,000.
#include "src/formats/json_text.h"

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
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(nlohmann::json::binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (rules_.unique_keys) keys_.emplace_back();
    return deeper();
  }
  bool key(std::string& name) override {
    if (!rules_.unique_keys || keys_.back().insert(name).second) return true;
    fault_ = "the key " + name + " appears twice; a key may appear once";
    return false;
  }
  bool end_object() override {
    if (rules_.unique_keys) keys_.pop_back();
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
  bool deeper() {
    if (++depth_ <= rules_.deepest) return true;
    fault_ = "nested more than " + std::to_string(rules_.deepest) + " deep";
    return false;
  }

  const JsonRules rules_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
  std::string fault_;
};

}  // namespace

std::string json_fault(std::string_view text, const JsonRules& rules) {
  Reader reader(rules);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.fault();
}

}  // namespace twinbench
