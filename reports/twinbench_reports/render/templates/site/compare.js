// The comparison of any two runs, in the browser, by the rule of site/compare.py; a test holds the two against each other.
"use strict";
const WORDS = ["worse", "unclear", "better", "same", ""];
const SHAPES = {worse: "▼", unclear: "◆", better: "●", same: "□"};

function significant(value) {
  if (value === 0) return "0";
  let exponent = Math.floor(Math.log10(Math.abs(value)));
  if (exponent < -4 || exponent >= 9) {
    const [mantissa, power] = value.toExponential(2).split("e");
    return `${mantissa}e${Number(power)}`;
  }
  const scale = 10 ** (2 - exponent);
  const rounded = Math.round(value * scale) / scale;
  exponent = Math.floor(Math.log10(Math.abs(rounded)));
  const digits = Math.max(0, 2 - exponent);
  return rounded.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
}
function scaled(value, units, rest) {
  for (const [unit, scale] of units) if (Math.abs(value) >= scale) return `${significant(value / scale)} ${unit}`;
  return rest(value);
}
const seconds = (value) => scaled(value, [["s", 1], ["ms", 1e-3], ["µs", 1e-6]], (rest) => `${significant(rest / 1e-9)} ns`);
const whole = (value) => Math.round(value).toLocaleString("en-US");
const counter = (name, value) => (name.endsWith("bytes]")
  ? scaled(value, [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]], (rest) => `${whole(rest)} B`) : whole(value));
const signed = (value) => `${value < 0 ? "" : "+"}${value.toFixed(1)}`;
const percent = (change) => (change === null ? "–" : `${signed(100 * change)} %`);

function speedup(data, name, before, after) {
  const logs = (triple) => triple.map(Math.log);
  const [ratio, lower, upper] = logs(after), [old, oldLower, oldUpper] = logs(before);
  const estimate = ratio - old;
  const low = estimate - Math.hypot(ratio - lower, oldUpper - old);
  const high = estimate + Math.hypot(upper - ratio, old - oldLower);
  const limit = Math.log1p(-data.smallest), beyond = estimate <= limit;
  let word = "same";
  if (beyond && high < 0) word = "worse";
  else if (beyond || low <= Math.log1p(-data.blind * data.smallest)) word = "unclear";
  else if (estimate >= -limit && low > 0) word = "better";
  const interval = `[${[low, high].map((end) => signed(100 * Math.expm1(end))).join(", ")}]`;
  return ["speedup", name, `${significant(before[0])}×`, `${significant(after[0])}×`, Math.expm1(estimate), interval, word];
}
function changes(data, before, after) {
  const rows = [];
  data.ratios.forEach((name, place) => {
    if (before.ratios[place] && after.ratios[place]) rows.push(speedup(data, name, before.ratios[place], after.ratios[place]));
  });
  data.counts.forEach((name, place) => {
    const [old, now] = [before.counts[place], after.counts[place]];
    if (old < 0 || now < 0) return;
    const word = now === old ? "same" : now > old ? "worse" : "better";
    rows.push(["count", name, counter(name, old), counter(name, now), old ? now / old - 1 : null, "", word]);
  });
  data.times.forEach((name, place) => {
    const [old, now] = [before.times[place], after.times[place]];
    if (old && now) rows.push(["time", name, seconds(old), seconds(now), now / old - 1, "", ""]);
  });
  const rank = (row) => [WORDS.indexOf(row[6]), row[4] === null ? 0 : -Math.abs(row[4])];
  return rows.sort((one, other) => rank(one)[0] - rank(other)[0] || rank(one)[1] - rank(other)[1]
    || (one[1] < other[1] ? -1 : 1));
}
function line([kind, name, before, after, change, interval, word]) {
  const head = make("th", {scope: "row"});
  name.split("/").forEach((part, place) => head.append(...(place ? ["/", make("wbr")] : []), part));
  const verdict = make("td");
  if (word) {
    const shape = make("span", {class: "shape", "aria-hidden": "true"}, SHAPES[word]);
    verdict.append(make("span", {class: `pill ${word}`}, shape, word));
  }
  return make("tr", {}, make("td", {}, kind), head, make("td", {class: "n"}, before),
    make("td", {class: "n strong"}, after), make("td", {class: "n"}, percent(change)), make("td", {class: "i"}, interval), verdict);
}
const runs = document.getElementById("runs");
if (runs) {
  const data = JSON.parse(runs.textContent), choose = document.getElementById("choose");
  const [before, after] = all("select", choose), table = document.getElementById("changes");
  let tools = null;
  const show = () => {
    const rows = changes(data, data.runs[before.value], data.runs[after.value]);
    table.tBodies[0].replaceChildren(...rows.map(line));
    all("th", table.tHead).forEach((head) => head.removeAttribute("aria-sort"));
    const count = (word) => rows.filter((row) => row[6] === word).length;
    document.getElementById("compared").textContent =
      `${count("worse")} worse, ${count("unclear")} unclear, ${count("better")} better, ${count("same")} the same.`;
    if (tools) tools.remove();
    addFilter(table.parentElement, all("tr", table.tBodies[0]), "changes");
    tools = table.parentElement.previousElementSibling;
  };
  choose.hidden = false;
  all("select", choose).forEach((select) => select.addEventListener("change", show));
  show();
}
