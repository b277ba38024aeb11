// Widths first, then lines.
#include "harness/terminal/table.h"

#include <algorithm>
#include <utility>

#include "harness/terminal/style.h"
#include "src/common/error.h"

namespace twinbench {

void Table::add_row(std::vector<std::string> cells) {
  if (cells.size() != columns_.size())
    throw Error(ErrorKind::kDimensionMismatch, "table row", std::to_string(cells.size()) + " cells",
                "give " + std::to_string(columns_.size()) + ", one a column");
  rows_.push_back(std::move(cells));
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths;
  std::vector<std::string> headers, rules;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    std::size_t width = display_width(columns_[column].header);
    for (const auto& row : rows_) width = std::max(width, display_width(row[column]));
    widths.push_back(width);
    headers.push_back(columns_[column].header);
    rules.push_back(std::string(width, '-'));
  }
  print_line(out, headers, widths);
  print_line(out, rules, widths);
  for (const auto& row : rows_) print_line(out, row, widths);
}

void Table::print_line(std::ostream& out, const std::vector<std::string>& cells,
                       const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    const std::string padding(widths[column] - display_width(cells[column]), ' ');
    if (column > 0) line += "  ";
    line += columns_[column].align == Align::kRight ? padding + cells[column] : cells[column] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << "\n";
}

}  // namespace twinbench
