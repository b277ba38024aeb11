// A recursive-descent parser and evaluator for size expressions.
#include "src/expression.h"

#include <algorithm>
#include <cctype>

#include "src/common/error.h"

namespace twinbench {

class Expression::Parser {
 public:
  Parser(const std::string& text, std::vector<Node>& nodes) : text_(text), nodes_(nodes) {}

  int parse() {
    const int root = selection();
    skip_spaces();
    if (at_ != text_.size()) fail("an operator or the end");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error(ErrorKind::kBadArgument, "size expression", text_,
                "expected " + expected + " at character " + std::to_string(at_ + 1));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool accept(const std::string& token) {
    skip_spaces();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  void expect(const std::string& token) {
    if (!accept(token)) fail("'" + token + "'");
  }
  int add(Node node) {
    nodes_.push_back(std::move(node));
    return static_cast<int>(nodes_.size()) - 1;
  }
  int binary(char kind, int first, int second) { return add({kind, 0, "", first, second, -1}); }

  int selection() {
    const int condition = comparison();
    if (!accept("?")) return condition;
    const int then = selection();
    expect(":");
    const int otherwise = selection();
    return add({'?', 0, "", condition, then, otherwise});
  }
  int comparison() {
    const int left = sum();
    if (accept("==")) return binary('=', left, sum());
    if (accept("<")) return binary('<', left, sum());
    return left;
  }
  int sum() {
    int left = product();
    for (;;) {
      if (accept("+"))
        left = binary('+', left, product());
      else if (accept("-"))
        left = binary('-', left, product());
      else
        return left;
    }
  }
  int product() {
    int left = atom();
    for (;;) {
      if (accept("*"))
        left = binary('*', left, atom());
      else if (accept("/"))
        left = binary('/', left, atom());
      else
        return left;
    }
  }
  int atom() {
    skip_spaces();
    if (accept("(")) {
      const int inner = selection();
      expect(")");
      return inner;
    }
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    const std::string word = text_.substr(start, at_ - start);
    if (word.empty()) fail("a number, a size or '('");
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      if (word.size() > 15 || word.find_first_not_of("0123456789") != std::string::npos) fail("a whole number");
      return add({'n', std::stoll(word), "", -1, -1, -1});
    }
    const char function = word == "max" ? 'M' : word == "min" ? 'm' : word == "ceil" ? 'c' : '\0';
    if (!function || !accept("(")) return add({'s', 0, word, -1, -1, -1});
    const int first = selection();
    expect(",");
    const int second = selection();
    expect(")");
    return binary(function, first, second);
  }

  const std::string& text_;
  std::vector<Node>& nodes_;
  std::size_t at_ = 0;
};

Expression::Expression(std::string text) : text_(std::move(text)) { root_ = Parser(text_, nodes_).parse(); }

const std::string& Expression::symbol() const {
  static const std::string none;
  return nodes_[static_cast<std::size_t>(root_)].kind == 's' ? nodes_[static_cast<std::size_t>(root_)].name : none;
}

Expression Expression::with(const std::string& symbol, std::int64_t number) const {
  Expression fixed = *this;
  for (auto& node : fixed.nodes_)
    if (node.kind == 's' && node.name == symbol) node = {'n', number, "", -1, -1, -1};
  return fixed;
}

std::vector<std::string> Expression::symbols() const {
  std::vector<std::string> found;
  for (const auto& node : nodes_)
    if (node.kind == 's' && std::find(found.begin(), found.end(), node.name) == found.end()) found.push_back(node.name);
  return found;
}

namespace {

bool is_zero(std::int64_t value) { return value == 0; }
bool is_zero(const c10::SymInt& value) { return value == 0; }

}  // namespace

template <class Integer>
Integer Expression::value(int index, const std::function<Integer(const std::string&)>& size_of) const {
  const Node& node = nodes_[static_cast<std::size_t>(index)];
  if (node.kind == 'n') return Integer(node.number);
  if (node.kind == 's') return size_of(node.name);
  const Integer first = value<Integer>(node.first, size_of);
  if (node.kind == '?') return value<Integer>(is_zero(first) ? node.third : node.second, size_of);
  const Integer second = value<Integer>(node.second, size_of);
  if ((node.kind == '/' || node.kind == 'c') && is_zero(second))
    throw Error(ErrorKind::kOutOfRange, "size expression", text_, "a divisor is 0 at these sizes");
  switch (node.kind) {
    case '+': return first + second;
    case '-': return first - second;
    case '*': return first * second;
    case '/': return first / second;
    case 'c': return (first + second - Integer(1)) / second;
    case '=': return Integer(first == second ? 1 : 0);
    case '<': return Integer(first < second ? 1 : 0);
    case 'M': return first < second ? second : first;
    default: return first < second ? first : second;
  }
}

std::int64_t Expression::evaluate(const std::function<std::int64_t(const std::string&)>& size_of) const {
  return value<std::int64_t>(root_, size_of);
}

c10::SymInt Expression::evaluate_symbolic(const std::function<c10::SymInt(const std::string&)>& size_of) const {
  return value<c10::SymInt>(root_, size_of);
}

}  // namespace twinbench
