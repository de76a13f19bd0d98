// The noise page: the spectra of two orders and the variance of SGD under each, drawn again as a slider moves.

const namespace = document.querySelector("svg").namespaceURI;
const byId = (id) => document.getElementById(id);
const WIDTH = 560, HEIGHT = 314, LEFT = 62, RIGHT = 534, TOP = 14, BOTTOM = 252;
const CHOICES = {
  n: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].map((thousands) => 1000 * thousands),
  b: [1, 2, 5, 10, 20, 50, 100, 200, 250, 500],
  k: [0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16],
};
const round = (value) => String(Number(value.toPrecision(3)));
const touch = window.matchMedia("(pointer: coarse)");
const reading = {}; // the place where the curves of a chart are read, by the chart's id

function draw(name, attributes, text) {
  const element = document.createElementNS(namespace, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// The values of the sliders.
function state() {
  const at = Object.fromEntries(Object.entries(CHOICES).map(([name, values]) => [name, values[byId(name).value]]));
  const rate = 10 ** Number(byId("rate").value), curvature = 10 ** Number(byId("curvature").value);
  const u = rate * curvature;
  const first = byId("first").value, second = byId("second").value;
  const fits = (order) => order !== "srs" || Math.round(at.k * at.n) >= at.b; // else no batch can be drawn from the pool
  const orders = [first, second].filter(fits);
  return { ...at, rate, curvature, u, kappa: (u * at.n) / at.b, first, second, orders };
}

// Draw the axes of a chart that is logarithmic in x, from `low` to `high`. Return the functions that place a point.
function axes(svg, low, high, top) {
  const x = (value) => LEFT + (Math.log(value / low) / Math.log(high / low)) * (RIGHT - LEFT);
  const y = (value) => BOTTOM - (value / top) * (BOTTOM - TOP);
  svg.replaceChildren();
  for (let value = 0; value <= top + 1e-9; value += top / 5) {
    svg.append(draw("line", { class: "grid", x1: LEFT, x2: RIGHT, y1: y(value), y2: y(value) }));
    svg.append(draw("text", { x: LEFT - 7, y: y(value) + 4, "text-anchor": "end" }, round(value)));
  }
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * 1.0001; power += 1) {
    svg.append(draw("line", { class: "axis", x1: x(10 ** power), x2: x(10 ** power), y1: BOTTOM, y2: BOTTOM + 5 }));
    svg.append(draw("text", { x: x(10 ** power), y: BOTTOM + 30, "text-anchor": "middle" }, round(10 ** power)));
  }
  svg.append(draw("line", { class: "axis", x1: LEFT, x2: RIGHT, y1: BOTTOM, y2: BOTTOM }));
  svg.append(draw("text", { x: (LEFT + RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, svg.dataset.along));
  return { x, y, low, high };
}

// The places where curves can be read: evenly along the axis, and at whole numbers, where the spectral lines are.
function places(low, high) {
  const even = Array.from({ length: 81 }, (_, index) => low * (high / low) ** (index / 80));
  const whole = Array.from({ length: 12 }, (_, index) => index + 1).filter((value) => value < high);
  return [...new Set([...even, ...whole])].sort((a, b) => a - b);
}

function read(svg, { x, low, high }, orders, valueText) {
  const output = svg.parentElement.querySelector(".reading");
  svg.place = { x, every: places(low, high) };
  if (reading[svg.id] === undefined) {
    output.textContent = touch.matches ? "Touch the curves to read them." : "Point at the curves, or use the arrow keys, to read them.";
    return;
  }
  const at = Math.min(reading[svg.id], high);
  svg.append(draw("line", { class: "cursor", x1: x(at), x2: x(at), y1: TOP, y2: BOTTOM }));
  output.textContent = `At ${round(at)}: ${orders.map((order) => `${names[order]} ${valueText(order, at)}`).join(", ")}.`;
}

function readable(svg) {
  const panel = svg.parentElement;
  const go = (to) => {
    reading[svg.id] = to;
    update();
  };
  const under = (event) => {
    const box = svg.getBoundingClientRect(), at = ((event.clientX - box.left) / box.width) * WIDTH;
    const far = (value) => Math.abs(svg.place.x(value) - at);
    go(svg.place.every.reduce((best, one) => (far(one) < far(best) ? one : best)));
  };
  svg.addEventListener("pointermove", under);
  svg.addEventListener("pointerdown", under);
  // A finger leaves the screen after every touch, so its values stay.
  panel.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") go(undefined); });
  panel.addEventListener("blur", () => { if (!touch.matches) go(undefined); });
  panel.addEventListener("keydown", (event) => {
    const { every } = svg.place, by = { ArrowRight: 1, ArrowLeft: -1, Home: -every.length, End: every.length }[event.key];
    if (event.key === "Escape") go(undefined);
    if (!by) return;
    event.preventDefault();
    const from = every.findIndex((value) => value >= (reading[svg.id] ?? 1));
    go(every[Math.min(Math.max((from < 0 ? every.length - 1 : from) + by, 0), every.length - 1)]);
  });
}

function curve(svg, { x, y }, order, second, low, high, value) {
  const group = draw("g", { class: `${order}${second ? " second" : ""}`, "data-order": order }), number = 240, points = [];
  for (let index = 0; index <= number; index += 1) {
    const at = low * (high / low) ** (index / number);
    points.push([x(at), y(value(at))]);
  }
  group.append(draw("path", { class: "line", d: `M${points.map(([a, b]) => `${a.toFixed(1)} ${b.toFixed(1)}`).join("L")}` }));
  for (let index = second ? 25 : 10; index < number; index += 40) {
    const [a, b] = points[index];
    group.append(draw("path", { class: "mark", d: marks[order], transform: `translate(${a.toFixed(1)} ${b.toFixed(1)})` }));
  }
  svg.append(group);
  return group;
}

function spectra(now) {
  const svg = byId("spectrum"), steps = now.n / now.b, low = 0.01, high = Math.min(100, steps / 2);
  // The height of a spectral line is its power spread over one cycle per epoch: 1 for shuffle once.
  const lines = (order) => (laws[order].line ? Array.from({ length: Math.min(12, Math.floor(high)) }, (_, m) => m + 1) : []);
  const top = 1.25, place = axes(svg, low, high, top);
  const height = (order, m) => (laws[order].line(now, m / steps) * steps) / 2;
  for (const order of now.orders) {
    const group = curve(svg, place, order, order === now.second, low, high, (at) => laws[order].continuous(now, at / steps));
    for (const m of lines(order)) {
      const ends = { x1: place.x(m), x2: place.x(m), y1: BOTTOM, y2: place.y(Math.min(height(order, m), top)) };
      group.append(draw("line", { class: "stem", ...ends }));
    }
  }
  read(svg, place, now.orders, (order, at) => laws[order].continuous(now, at / steps).toFixed(3) +
    (lines(order).includes(at) ? ` and a line of ${height(order, at).toFixed(3)}` : ""));
}

function variances(now) {
  const svg = byId("variance"), steps = now.n / now.b, low = 0.01, high = Math.min(100, steps * 0.9);
  const place = axes(svg, low, high, 1);
  const law = (order, kappa) => laws[order].variance(kappa / steps, now);
  for (const order of now.orders) curve(svg, place, order, order === now.second, low, high, (kappa) => law(order, kappa));
  read(svg, place, now.orders, (order, kappa) => law(order, kappa).toFixed(3));
  if (now.kappa < low || now.kappa > high || now.u >= 1) return;
  const at = place.x(now.kappa);
  svg.append(draw("line", { class: "here", x1: at, x2: at, y1: TOP, y2: BOTTOM }));
  for (const order of now.orders) {
    const point = { cx: at, cy: place.y(laws[order].variance(now.u, now)), r: 6 };
    svg.append(draw("circle", { class: `${order} point`, ...point }));
  }
}

function numbers(now) {
  byId("n-value").textContent = now.n.toLocaleString("en");
  byId("b-value").textContent = String(now.b);
  byId("k-value").textContent = round(now.k);
  byId("rate-value").textContent = round(now.rate);
  byId("curvature-value").textContent = round(now.curvature);
  byId("kappa").textContent = round(now.kappa);
  const stable = now.u < 1;
  for (const which of ["first", "second"]) {
    const order = now[which];
    byId(`${which}-variance`).textContent = stable && now.orders.includes(order) ? laws[order].variance(now.u, now).toFixed(3) : "–";
    byId(`${which}-name`).textContent = names[order];
    byId(`${which}-legend`).className.baseVal = `${order}${which === "second" ? " second" : ""}`;
    byId(`${which}-legend`).querySelector(".mark").setAttribute("d", marks[order]);
  }
  byId("sentence").textContent = stable ? sentence(now) :
    `Learning rate times curvature is ${round(now.u)}: a step overshoots the minimum, and from 2 on SGD diverges. Make one smaller.`;
}

function sentence(now) {
  const [first, second] = [now.first, now.second].map((order) => names[order]);
  if (now.orders.length < 2)
    return `A pool of ${Math.round(now.k * now.n)} slots cannot give batches of ${now.b}. Make the pool larger, or B smaller.`;
  const apart = laws[now.second].variance(now.u, now) - laws[now.first].variance(now.u, now);
  if (now.first === now.second) return "Choose two different orders to compare them.";
  if (Math.abs(apart) < 0.05)
    return `Here ${first} and ${second} differ by ${Math.abs(apart).toFixed(3)} of the variance under independent draws: the order hardly matters.`;
  const [quiet, loud] = apart > 0 ? [now.first, now.second] : [now.second, now.first];
  const factor = equivalentRate(quiet, loud, now.u, now);
  const also = factor === null ? "" : ` With ${factor.toFixed(2)} times the learning rate ${names[quiet]} has as much.`;
  return `Here the weight varies more under ${names[loud]}, by ${Math.abs(apart).toFixed(3)} of the variance under independent draws.${also}`;
}

function update() {
  const now = state();
  spectra(now);
  variances(now);
  numbers(now);
}

for (const [name, values] of Object.entries(CHOICES)) byId(name).max = values.length - 1;
for (const input of document.querySelectorAll("input, select")) input.addEventListener("input", update);
for (const svg of document.querySelectorAll("svg.chart")) readable(svg);
for (const button of document.querySelectorAll(".preset"))
  button.addEventListener("click", () => {
    for (const [name, value] of Object.entries(JSON.parse(button.dataset.values))) byId(name).value = value;
    update();
  });
update();
