"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = id => document.getElementById(id);
const names = Object.keys(data.errors).filter(name => name !== data.without);

function linear(axis, x) {
  x = Math.min(Math.max(x, axis[0]), axis[axis.length - 1]);
  if (axis.length === 1) return [[0, 1]];
  let left = 0;
  while (left < axis.length - 2 && axis[left + 1] <= x) left += 1;
  const part = (x - axis[left]) / (axis[left + 1] - axis[left]);
  return [[left, 1 - part], [left + 1, part]];
}
function cubic(axis, x) {
  const [[left], [right, t]] = linear(axis, x), last = axis.length - 1;
  const weights = new Array(axis.length).fill(0);
  for (const [place, w] of [[left - 1, (-t + 2 * t * t - t * t * t) / 2], [left, (2 - 5 * t * t + 3 * t * t * t) / 2],
      [right, (t + 4 * t * t - 3 * t * t * t) / 2], [right + 1, (t * t * t - t * t) / 2]]) {
    if (place < 0) { weights[0] += 2 * w; weights[1] -= w; }
    else if (place > last) { weights[last] += 2 * w; weights[last - 1] -= w; }
    else weights[place] += w;
  }
  return weights.map((w, place) => [place, w]).filter(([, w]) => w);
}
function error(name, study) {
  const fill = Math.log(study.answers - 1) / Math.log(study.items - 1);
  const people = cubic(data.persons, Math.log(study.persons));
  const budget = name === data.without ? [[0, 1]] : cubic(data.epsilons, Math.log(study.epsilon));
  let total = 0;
  for (const [place, share] of linear(data.items, Math.log(study.items))) {
    const known = data.answers[place].map(a => Math.log(a - 1));
    for (const [column, part] of linear(known, fill * known[known.length - 1]))
      for (const [i, v] of people) for (const [k, w] of budget)
        total += share * part * v * w * data.errors[name][place][column][i][k];
  }
  return Math.exp(total);
}
const between = (axis, value) => Math.exp(axis[0] + (axis[axis.length - 1] - axis[0]) * value / 1000);
const place = (axis, value) => Math.round(1000 * (Math.log(value) - axis[0]) / (axis[axis.length - 1] - axis[0]));
const neat = (value, digits) => Number(value.toPrecision(digits));
function read() {
  const items = Math.round(between(data.items, at("items").value));
  return {
    persons: Math.round(neat(between(data.persons, at("persons").value), 3)),
    items,
    answers: 1 + Math.round(Math.pow(items - 1, at("answers").value / 1000)),
    epsilon: neat(between(data.epsilons, at("epsilon").value), 2),
    mechanism: at("mechanism").value,
  };
}
const worth = (study, without, rmse) => Math.round(study.persons * Math.min(1, (without / rmse) ** 2));
function order(rmse) {
  const [low, high] = data.order_at, axis = data.order.map((_, k) => low + (high - low) * k / (data.order.length - 1));
  return linear(axis, rmse / data.spread).reduce((sum, [k, w]) => sum + w * data.order[k], 0);
}
function warn(study, rmse, without) {
  const found = [], whole = data.spread * Math.sqrt((study.items - 1) / study.items);
  if (rmse > data.hopeless * whole) found.push(`At epsilon ${study.epsilon} the release will say nothing about most items.`);
  if (study.epsilon > data.large_epsilon) found.push(`Epsilon ${study.epsilon} is too large to mean much.`);
  if (data.delta * study.persons > 1) found.push(`Delta is above 1 / ${study.persons.toLocaleString("en")} persons: choose a smaller one.`);
  at("warnings").replaceChildren(...found.map(text => Object.assign(document.createElement("p"), { textContent: text })));
}
function draw(study) {
  const left = 55, right = 745, top = 10, bottom = 260, ns = "http://www.w3.org/2000/svg";
  const lows = data.persons, low = Math.log(0.002), high = Math.log(1.5);
  const x = v => left + (right - left) * (Math.log(v) - lows[0]) / (lows[lows.length - 1] - lows[0]);
  const y = v => bottom - (bottom - top) * (Math.min(Math.max(Math.log(v), low), high) - low) / (high - low);
  const make = (tag, attributes, text) => { const made = document.createElementNS(ns, tag); for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v); if (text) made.textContent = text; return made; };
  const parts = [];
  for (const v of [0.003, 0.01, 0.03, 0.1, 0.3, 1]) parts.push(make("line", { class: "grid", x1: left, x2: right, y1: y(v), y2: y(v) }), make("text", { x: left - 8, y: y(v) + 4, "text-anchor": "end" }, String(v)));
  for (const v of [100, 1000, 10000, 100000, 1000000]) if (x(v) <= right + 1) parts.push(make("text", { x: x(v), y: bottom + 20, "text-anchor": v === 100 ? "start" : v === 1000000 ? "end" : "middle" }, v.toLocaleString("en")));
  parts.push(make("text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, "persons"));
  const line = name => Array.from({ length: 61 }, (_, k) => between(data.persons, 1000 * k / 60)).map(n => `${x(n).toFixed(1)},${y(error(name, { ...study, persons: n })).toFixed(1)}`).join(" ");
  parts.push(make("polyline", { class: "plain", points: line(data.without) }), make("polyline", { class: "private", points: line(study.mechanism) }));
  parts.push(make("circle", { cx: x(study.persons), cy: y(error(study.mechanism, study)), r: 5, fill: "var(--private)" }));
  at("curve").replaceChildren(...parts);
}
function compare(study, without) {
  at("compared").replaceChildren(...names.map(name => {
    const row = document.createElement("tr"), rmse = error(name, study);
    if (name === study.mechanism) row.className = "chosen";
    row.append(...[["th", name], ["td", rmse.toFixed(3)], ["td", worth(study, without, rmse).toLocaleString("en")]].map(([tag, text]) => Object.assign(document.createElement(tag), { textContent: text })));
    return row;
  }));
}
function update() {
  const study = read(), rmse = error(study.mechanism, study), without = error(data.without, study);
  for (const name of ["persons", "items", "answers", "epsilon"]) at("show-" + name).textContent = study[name].toLocaleString("en");
  at("rmse").textContent = rmse.toFixed(3);
  at("rmse-without").textContent = without.toFixed(3);
  at("equivalent").textContent = worth(study, without, rmse).toLocaleString("en");
  const share = order(rmse);
  at("order").textContent = share > 0.995 ? "over 99%" : (100 * share).toFixed(0) + "%";
  warn(study, rmse, without); draw(study); compare(study, without);
}
at("mechanism").append(...names.map(name => new Option(name, name)));
at("mechanism").value = names.includes(data.start.mechanism) ? data.start.mechanism : names[0];
for (const name of ["persons", "items"]) at(name).value = place(data[name], data.start[name]);
at("epsilon").value = place(data.epsilons, data.start.epsilon);
at("answers").value = Math.round(1000 * Math.log(data.start.answers - 1) / Math.log(data.start.items - 1));
document.querySelector("form").addEventListener("input", update);
update();
