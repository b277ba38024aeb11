// The rules a specification must keep.
#include "src/check_spec.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "src/common/nearest_name.h"
#include "src/draws.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

class SpecCheck {
 public:
  explicit SpecCheck(const ComponentSpec& spec)
      : spec_(spec), signature_(spec.signature), file_("src/" + spec.pipeline + "/" + spec.name + "/spec.cpp: ") {}

  void run() {
    check_record();
    check_symbols();
    check_card_limits();
    check_tensors();
    for (const auto& one : spec_.cases) check_case(one);
    for (const auto& one : spec_.cases) check_draw_numbers(one);
  }

 private:
  [[noreturn]] void fail(ErrorKind kind, const std::string& entry, const std::string& value,
                         const std::string& remedy) const {
    throw Error(kind, file_ + entry, value, remedy);
  }
  void need(bool holds, const std::string& entry, const std::string& value, const std::string& remedy) const {
    if (!holds) fail(ErrorKind::kBadArgument, entry, value, remedy);
  }

  void unique(std::set<std::string>& taken, const std::string& what, const std::string& name) const {
    need(taken.insert(name).second, what, name, "this name is taken: give each one its own");
  }

  void check_record() const {
    need(!spec_.summary.empty(), "summary", "", "say in one sentence what the component does");
    need(!spec_.source.empty(), "source", "", "name the section: \"energy_flow C07\"");
    need(!spec_.sin.empty(), "sin", "", "say what the documents accuse the baseline of");
    need(!spec_.proof.empty(), "proof", "", "give at least one proof counter with both values");
    need(static_cast<bool>(spec_.cost), "cost", "", "give the bytes and FLOPs that any version must move");
    need(!spec_.cases.empty(), "cases", "", "give at least one case");
    need(!spec_.dtypes.empty(), "dtypes", "", "give at least one numeric mode");
    need(!signature_.inputs.empty(), "inputs", "", "list the inputs");
    need(!signature_.outputs.empty(), "outputs", "", "list the outputs");
    for (const auto& one : spec_.proof)
      need(one.of_result || (one.baseline && one.optimized), "proof " + one.counter, one.formula,
           "give both expected values, or of_result");
    for (const auto& one : spec_.relations)
      need(!one.name.empty() && one.other, "relation", one.name, "give its name and the other setting");
    for (const auto& one : spec_.refusals)
      need(!one.name.empty() && one.spoil && !one.field.empty(), "refusal", one.name,
           "give its name, how the inputs are spoiled and which field the error names");
    need(spec_.batch_size.empty() || signature_.has_size(spec_.batch_size), "batch_size", spec_.batch_size,
         "name a size of the signature");
  }

  void check_symbols() {
    std::set<std::string> options;
    for (const auto& size : signature_.sizes) {
      unique(symbols_, "size", size.name);
      need(size.low <= size.high, "size " + size.name, std::to_string(size.low), "the range is empty");
    }
    for (const auto& derived : signature_.derived) {
      check_expression("derived size " + derived.name, derived.value, false);
      unique(symbols_, "derived size", derived.name);
    }
    for (const auto& size : signature_.sizes)
      need(size.part_of.empty() || (signature_.find_option(size.part_of) && size.low == 0 && size.least > 0),
           "size " + size.name, size.part_of, "a part's size is 0 without the option that it names, and more with it");
    for (const auto& option : signature_.options) {
      unique(options, "option", option.name);
      need(option.otherwise >= option.low && option.otherwise <= option.high, "option " + option.name,
           c10::str(option.otherwise), "the default lies outside the option's own range");
    }
  }

  void check_card_limits() const {
    for (const auto& limit : spec_.card_limits) {
      const std::string entry = "card_limits " + limit.of.text();
      check_expression(entry, limit.of, false);
      need(limit.most > 0 && !limit.meaning.empty(), entry, std::to_string(limit.most),
           "give the largest allowed number and what it counts");
    }
  }

  void check_expression(const std::string& entry, const Expression& value, bool per_layer) const {
    for (const auto& symbol : value.symbols()) {
      if (symbols_.count(symbol) || (per_layer && symbol == "layer") || value.is_any()) continue;
      const std::vector<std::string> known(symbols_.begin(), symbols_.end());
      fail(ErrorKind::kUnknownName, entry, symbol,
           "no such size in '" + value.text() + "'" + did_you_mean(symbol, known));
    }
  }

  template <class Spec>
  void check_tensor(const std::string& what, const Spec& tensor, std::set<std::string>& names) const {
    const std::string entry = what + " " + tensor.name;
    unique(names, what, tensor.name);
    for (const auto& extent : tensor.shape) check_expression(entry, extent, !tensor.per.empty());
    need(!tensor.batch_axis || *tensor.batch_axis < static_cast<std::int64_t>(tensor.shape.size()), entry,
         c10::str("batch axis ", tensor.batch_axis.value_or(0)), "the shape has no such axis; say batch(std::nullopt)");
    const bool two_planes = !tensor.shape.empty() && tensor.shape[0].symbols().empty() && tensor.shape[0].text() == "2";
    need(tensor.element != Element::kPlanar || two_planes, entry, "planar",
         "the first extent is 2: real, then imaginary parts");
    need(tensor.per.empty() || signature_.has_size(tensor.per), entry, tensor.per, "one_per() takes a size");
  }

  void check_tensors() const {
    std::set<std::string> inputs, outputs;
    for (const auto& input : signature_.inputs) {
      check_tensor("input", input, inputs);
      need(input.draw.fan.empty() || signature_.has_size(input.draw.fan), "input " + input.name, input.draw.fan,
           "a draw's fan is a size");
      need(input.draw.kind != Draw::Kind::kXavier || input.shape.size() >= 2, "input " + input.name, "xavier",
           "this draw takes a weight [out, in]");
      need(input.draw.kind != Draw::Kind::kXavier || input.element == Element::kFloating, "input " + input.name,
           "xavier", "this draw gives real values: draw complex ones normal, uniform or from the case");
      need(input.draw.kind != Draw::Kind::kKaiming || !input.shape.empty(), "input " + input.name, "kaiming",
           "this draw takes a weight [out, ...]");
    }
    for (const auto& output : signature_.outputs) {
      check_tensor("output", output, outputs);
      need(output.tolerance.kind != Tolerance::Kind::kMeasured || !output.gradient, "output " + output.name, "measured",
           "what is measured has no gradient");
    }
  }

  void check_case(const Case& one) const {
    const std::string entry = "case " + one.name;
    for (const auto& size : signature_.sizes) {
      const auto found = one.sizes.find(size.name);
      if (found == one.sizes.end()) fail(ErrorKind::kUnknownName, entry, size.name, "the case does not give this size");
      if (found->second < size.low || found->second > size.high)
        fail(ErrorKind::kOutOfRange, entry, size.name + " = " + std::to_string(found->second),
             c10::str("the size's range is ", size.low, " to ", size.high));
    }
    for (const auto& [name, value] : one.sizes) {
      const bool given =
          std::any_of(signature_.sizes.begin(), signature_.sizes.end(), [&](const auto& s) { return s.name == name; });
      if (!given) fail(ErrorKind::kUnknownName, entry, name, "the signature gives no such size");
    }
    const auto known = draws::distributions();
    if (std::find(known.begin(), known.end(), one.distribution) == known.end())
      fail(ErrorKind::kUnknownName, entry, one.distribution,
           "no such distribution" + did_you_mean(one.distribution, known));
    if (!one.specimen.empty()) {
      const OptionSpec* option = signature_.find_option(one.specimen);
      need(option && option->kind == OptionSpec::Kind::kSwitch && !option->of_inputs, entry, one.specimen,
           "a specimen is a switch of the options, and one that variants see");
      const auto given = one.options.find(one.specimen);
      need(given != one.options.end() && given->second == 1, entry, one.specimen, "the case switches its specimen on");
      need(!one.timed, entry, one.specimen, "a specimen is never timed: it has no right answer");
      need(&one != &spec_.cases.front(), entry, one.specimen,
           "the first case, which worked examples belong to, is a right one");
    }
    try {
      completed(signature_, {one});
    } catch (const Error& error) {
      fail(error.kind(), entry + ", " + error.field(), error.value(), error.remedy());
    }
  }

  // Data and weights are drawn from two streams; in each a number belongs to one tensor.
  void check_draw_numbers(const Case& one) const {
    std::map<std::pair<bool, std::uint32_t>, std::string> taken;
    for (const auto& input : inputs_of(signature_, completed(signature_, {one}))) {
      if (input.draw.kind == Draw::Kind::kNone) continue;
      const auto [place, is_new] =
          taken.emplace(std::pair(input.draw.kind == Draw::Kind::kCase, input.draw.number), input.name);
      need(is_new, "input " + input.name, c10::str("draw number ", input.draw.number),
           place->second + " has it already");
    }
  }

  const ComponentSpec& spec_;
  const Signature& signature_;
  std::string file_;
  std::set<std::string> symbols_;
};

}  // namespace

void set_id(ComponentSpec& spec, const std::string& pipeline, const std::string& name) {
  for (const auto& [entry, given, listed] :
       {std::tuple{"pipeline", spec.pipeline, pipeline}, std::tuple{"name", spec.name, name}})
    if (!given.empty() && given != listed)
      throw Error(ErrorKind::kBadArgument, "src/" + pipeline + "/" + name + "/spec.cpp: " + entry, given,
                  "its folder and src/components.def call it " + pipeline + "." + name + ": leave the entry out");
  spec.pipeline = pipeline;
  spec.name = name;
}

void check_spec(const ComponentSpec& spec) { SpecCheck(spec).run(); }

}  // namespace twinbench
