// An aligned plain-text table.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace twinbench {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string header;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell a column, UTF-8; may hold colours. Throws Error(kDimensionMismatch) on another number of cells.
  void add_row(std::vector<std::string> cells);

  std::size_t rows() const { return rows_.size(); }

  // Header, a rule, the rows; two blanks between columns, none at the end of a line.
  void print(std::ostream& out) const;

 private:
  void print_line(std::ostream& out, const std::vector<std::string>& cells,
                  const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace twinbench
