// A component's signature as data: its sizes, options, inputs and outputs, each listed once. Everything that needs to
// know them derives it from here: generated inputs, checks, gradients, layouts, PyTorch operators, random sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/expression.h"
#include "src/tolerance.h"

namespace twinbench {

// What a tensor's elements are. Floating and complex ones follow the cell's numeric mode (see Dtype). kPlanar: complex
// numbers as two real planes, a floating tensor whose first axis has length 2. Complex and planar values are compared
// as complex numbers; kDouble: fp64 in every mode. The gradient of z = x + iy is dL/dx + i dL/dy, as PyTorch has it.
enum class Element { kFloating, kComplex, kPlanar, kDouble, kInt64, kInt32, kByte, kBool };

// What an input is for. kWeight: an operand of matrix products, rounded in the modes that round operands. kBias, kGain:
// parameters added to or multiplied with rows. kState: what run() starts from, and advances in a copy (see
// Runnable::reset).
enum class Role { kData, kWeight, kBias, kGain, kState };

// A size symbol: an axis' length, or a plain number that the case gives (a step count, a seed).
struct SizeSpec {
  std::string name;
  std::int64_t low = 1, high = std::int64_t{1} << 24;
  // Of a part that is there with this option: then it is `least` at least, else it may be 0.
  std::string part_of = {};
  std::int64_t least = 0;  // without an option: of sizes that are drawn, where less is a listed case's own

  bool is_there(std::int64_t given) const { return part_of.empty() || given > 0; }
  std::int64_t least_drawn() const { return std::max<std::int64_t>({1, low, least}); }  // where the part is there
};

// A size computed from others: {"cells", "width * height"}. `free`: so in the cases, but tensors may have another.
struct DerivedSize {
  std::string name;
  Expression value;
  bool free = false;
};

// A setting of the component, or (of_inputs) of its generated inputs, which no variant ever sees. The default stands
// here and nowhere else: a variant reads Setting::option, which knows it.
struct OptionSpec {
  enum class Kind { kSwitch, kCount, kReal, kChoice };
  std::string name;
  Kind kind = Kind::kReal;
  double otherwise = 0;  // the default
  double low = 0, high = 1;
  std::string meaning;
  std::vector<std::string> choices = {};  // kChoice: the value is an index into these
  bool of_inputs = false;
};
OptionSpec switch_option(std::string name, bool otherwise, std::string meaning);
OptionSpec count_option(std::string name, std::int64_t otherwise, double low, double high, std::string meaning);
OptionSpec real_option(std::string name, double otherwise, double low, double high, std::string meaning);
OptionSpec choice_option(std::string name, std::vector<std::string> choices, std::string otherwise,
                         std::string meaning);
OptionSpec of_inputs(OptionSpec option);

// How the values of an input are drawn. `number` is the tensor's place in its Philox stream (the data stream for
// from_case, the weight stream for the rest) and is explicit: adding an input moves no other one's values.
struct Draw {
  enum class Kind { kNone, kCase, kNormal, kUniform, kFanIn, kXavier, kKaiming };
  Kind kind = Kind::kNone;
  std::uint32_t number = 0;
  double spread = 1;         // standard deviation, typical magnitude, half-width or gain
  double low = 0, high = 0;  // kUniform
  std::string fan;  // kFanIn: the size that is the fan. kCase: the spread is divided by this size's square root
  std::string distribution;  // kCase: this one, whatever the case's
};
Draw from_case(std::uint32_t number, double spread = 1, std::string divided_by_root_of = "");
Draw always(std::string distribution, std::uint32_t number, double spread = 1);
Draw normal(std::uint32_t number, double standard_deviation);
Draw uniform(std::uint32_t number, double low, double high);
Draw fan_in(std::uint32_t number, std::string fan);  // uniform in +-1/sqrt(fan)
Draw xavier(std::uint32_t number, double gain = 1);  // uniform; a weight [out, in]
Draw kaiming(std::uint32_t number);                  // normal, deviation sqrt(2 / first extent)
Draw not_drawn();                                    // the component's finish_inputs sets it

struct InputSpec {
  std::string name;
  std::vector<Expression> shape;  // one an axis; "any": whatever length (known at run time only)
  Draw draw;
  Role role = Role::kData;
  Element element = Element::kFloating;
  std::optional<std::int64_t> batch_axis;  // where batch items lie; none for weights
  bool differentiable = true;
  double shift = 0;                                 // added to every drawn value
  std::optional<std::pair<double, double>> limits;  // drawn values are clamped to these
  std::string per;                                  // a size: there is one tensor each, <name>_0, <name>_1, ...
  std::uint32_t number_step = 0;                    // between their draw numbers

  InputSpec batch(std::optional<std::int64_t> axis) const;
  InputSpec without_gradient() const;
  InputSpec shifted(double by) const;
  InputSpec clamped(double low, double high) const;
  // One tensor for each of `size` (layers, say); its shape may use the symbol `layer`. Neighbours in the list that are
  // per the same size alternate: weight_0, bias_0, weight_1, bias_1.
  InputSpec one_per(std::string size, std::uint32_t number_step) const;
  InputSpec of(Element element) const;
};

// `shape` is one text, "layers, flows, 3 * hidden". Data lies along batch axis 0 unless it is told otherwise.
InputSpec data(std::string name, const std::string& shape, Draw draw);
InputSpec keys(std::string name, const std::string& shape);  // int64, set by finish_inputs, no gradient
InputSpec weight(std::string name, const std::string& shape, Draw draw);
InputSpec bias(std::string name, const std::string& shape, Draw draw);
InputSpec gain(std::string name, const std::string& shape, Draw draw);
InputSpec state(std::string name, const std::string& shape, Draw draw);

struct OutputSpec {
  std::string name;
  Tolerance tolerance;
  std::optional<std::int64_t> batch_axis;  // absent: the output mixes items
  bool nan_allowed = false;                // the oracle itself may hold NaN here (documented propagation)
  std::vector<Expression> shape = {};
  Element element = Element::kFloating;
  std::optional<Draw> gradient = {};  // how grad_<name> is drawn in backward cases; absent: it has none
  std::string per = {};               // as an input's: gradients of per-layer weights
  bool advancing = false;             // a state that every run moves by a step, which is judged by itself too

  OutputSpec batch(std::optional<std::int64_t> axis) const;
  OutputSpec with_nan() const;
  OutputSpec of(Element element) const;
  OutputSpec with_gradient(std::uint32_t number, double spread = 1) const;  // normal data
  OutputSpec advanced() const;
};
// Along batch axis 0 unless told otherwise.
OutputSpec output(std::string name, const std::string& shape, Tolerance tolerance);
OutputSpec exact_output(std::string name, const std::string& shape, Element element = Element::kFloating);

struct Signature {
  std::vector<SizeSpec> sizes = {};
  std::vector<DerivedSize> derived = {};
  std::vector<OptionSpec> options = {};
  std::vector<InputSpec> inputs = {};
  std::vector<OutputSpec> outputs = {};
  Tolerance gradient{Tolerance::Kind::kGradient, {1e-4, 0}, {5e-2, 0}, "grad"};  // of every grad_<input>

  const OptionSpec* find_option(const std::string& name) const;
  bool has_size(const std::string& name) const;          // given or derived
  bool has_parts_with(const std::string& option) const;  // sizes that are there with it
  bool has_state() const;                                // an input that run() advances
};

// "a, 3 * b" -> expressions. Throws kBadArgument.
std::vector<Expression> shape_of(const std::string& text);

std::string to_string(Role role);        // data, weight, bias, gain, state
std::string to_string(Element element);  // floating, complex, planar, double, int64, int32, byte, bool

}  // namespace twinbench
