// Integer expressions over size symbols, as signatures write extents: "3 * hidden", "layer == 0 ? features + 1 :
// hidden".
#pragma once

#include <c10/core/SymInt.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace twinbench {

// Parsed once, evaluated often, over plain integers or over a tracer's symbolic ones.
// Operators + - * / (rounding down) == < ? : ( ), functions max(a, b), min(a, b), ceil(a, b) = a / b rounded up.
class Expression {
 public:
  // Throws kBadArgument, naming the text and the place where it stops making sense.
  explicit Expression(std::string text);

  const std::string& text() const { return text_; }
  // The name, where the expression is nothing but one symbol; else empty. Such an extent binds the symbol.
  const std::string& symbol() const;
  // "any": a length that only the tensor itself knows.
  bool is_any() const { return symbol() == "any"; }
  // The same expression with a number in a symbol's place.
  Expression with(const std::string& symbol, std::int64_t number) const;
  // Every symbol that occurs, each once.
  std::vector<std::string> symbols() const;

  // `size_of` gives a symbol's value, and throws for one it does not know.
  std::int64_t evaluate(const std::function<std::int64_t(const std::string&)>& size_of) const;
  c10::SymInt evaluate_symbolic(const std::function<c10::SymInt(const std::string&)>& size_of) const;

 private:
  struct Node {
    char kind;  // 'n' number, 's' symbol, '?' select, else the operator: + - * / = < M (max) m (min) c (ceil)
    std::int64_t number = 0;
    std::string name;
    int first = -1, second = -1, third = -1;
  };
  class Parser;
  template <class Integer>
  Integer value(int node, const std::function<Integer(const std::string&)>& size_of) const;

  std::string text_;
  std::vector<Node> nodes_;
  int root_ = -1;
};

}  // namespace twinbench
