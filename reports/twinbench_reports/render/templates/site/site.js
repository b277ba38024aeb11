// What a script adds to the pages: filters, tables that sort, and the comparison of any two runs. Without it nothing is lost.
"use strict";
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
};

// A box that hides the lines whose text lacks what is typed, and says how many are left.
function addFilter(list, lines, noun) {
  const input = make("input", {type: "search", placeholder: `filter ${noun}`, "aria-label": `Filter ${noun}`});
  const count = make("span", {class: "muted", role: "status"});
  const words = new Map(lines.map((line) => [line, line.textContent.toLowerCase()]));
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const line of lines) {
      line.hidden = !wanted.every((word) => words.get(line).includes(word));
      shown += !line.hidden;
    }
    count.textContent = wanted.length ? `${shown} of ${lines.length}` : "";
  });
  list.before(make("div", {class: "tools"}, input, count));
  return input;
}

// The lines of the overview: sorted by name, speedup or error; they come sorted by what is worst.
function addOrders(list, lines) {
  const orders = {"worst first": null, name: "name", speedup: "speedup", "largest error": "error"};
  const select = make("select", {"aria-label": "Order"});
  for (const order of Object.keys(orders)) select.append(make("option", {value: order}, order));
  const key = (line, field) => (line.dataset[field] === "" ? -Infinity : Number(line.dataset[field]));
  select.addEventListener("change", () => {
    const field = orders[select.value];
    const sorted = field === null ? lines : [...lines].sort((one, other) => field === "name"
      ? one.dataset.name.localeCompare(other.dataset.name) : key(other, field) - key(one, field));
    list.append(...sorted);
  });
  list.previousElementSibling.append(make("label", {}, "order ", select));
}

// Numbers in a cell by size, whatever their unit; everything else as text.
const UNITS = {ns: 1e-9, "µs": 1e-6, ms: 1e-3, KiB: 1024, MiB: 1048576, GiB: 1073741824};
function sortValue(cell) {
  const text = cell ? cell.textContent.trim() : "";
  const found = /^([+-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(\S*)/.exec(text);
  return found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] || 1) : text;
}
function compareValues(one, other) {
  if (typeof one === typeof other) return typeof one === "number" ? one - other : one.localeCompare(other);
  return typeof one === "number" ? -1 : 1;
}
function addSorting(table) {
  const heads = all("thead th", table);
  heads.forEach((head, column) => {
    const button = make("button", {type: "button"}, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = all("tbody tr", table).map((row) => [sortValue(row.cells[column]), row]);
      rows.sort((one, other) => (down ? -1 : 1) * compareValues(one[0], other[0]));
      table.tBodies[0].append(...rows.map((pair) => pair[1]));
    });
  });
}

for (const list of all("[data-filter]")) {
  const lines = all("details.line", list);
  addFilter(list, lines, list.dataset.filter);
  addOrders(list, lines);
}
for (const table of all("table[data-sort]")) {
  addSorting(table);
  if (table.id !== "changes") addFilter(table.parentElement, all("tbody tr", table), "rows");
}
