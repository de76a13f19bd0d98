// Values of a chart under the pointer or the arrow keys. Without this script the page still has all its values.
"use strict";
for (const figure of document.querySelectorAll("figure")) {
  const data = JSON.parse(figure.querySelector("script.data").textContent);
  figure.querySelectorAll(".panel").forEach((panel, index) => readable(panel, data.charts[index]));
}

// A link to a folded section, or to a place in it, opens the section.
function unfold() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  for (const fold of [target.querySelector(":scope > details.fold"), target.closest("details.fold")]) fold?.setAttribute("open", "");
  target.scrollIntoView();
}
addEventListener("hashchange", unfold);
unfold();

function readable(panel, chart) {
  const svg = panel.querySelector("svg.chart"), cursor = svg.querySelector(".cursor"), tip = panel.querySelector(".tip");
  const left = Number(svg.dataset.left), right = Number(svg.dataset.right), [low, high] = chart.x_ends;
  const readables = chart.series.filter((series) => series.readable);
  const everyX = [...new Set(readables.flatMap((series) => series.x))].sort((a, b) => a - b);
  if (!everyX.length) return;
  const placed = chart.log ? Math.log : (x) => x;
  const along = (x) => left + ((placed(x + chart.step_width / 2) - placed(low)) / (placed(high) - placed(low))) * (right - left);
  const read = (value) => (chart.decimals === null ? String(Number(value.toPrecision(4))) : value.toFixed(chart.decimals));
  let shown = null;

  function show(x) {
    shown = x;
    const at = along(x);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.removeAttribute("hidden");
    tip.replaceChildren(text("p", "x", chart.x_names[x] ?? `${chart.x_label} ${Number(x.toPrecision(6))}`));
    for (const series of readables) {
      const index = series.x.indexOf(x), value = index < 0 ? null : series.y[index];
      if (value === null) continue;
      const band = series.low && series.low[index] !== null ? ` (${read(series.low[index])}–${read(series.high[index])})` : "";
      const row = text("p", `value-of ${series.look}`, "");
      row.append(document.createElement("i"), text("span", "", series.name), text("b", "", read(value) + band));
      tip.append(row);
    }
    tip.hidden = false;
    const scale = svg.clientWidth / svg.viewBox.baseVal.width, room = panel.clientWidth - tip.offsetWidth;
    const beside = at * scale + 14;
    tip.style.left = `${Math.max(0, beside <= room ? beside : Math.min(room, at * scale - tip.offsetWidth - 14))}px`;
    // Place it below the picture, so that it covers no line.
    tip.style.top = `${svg.getBoundingClientRect().bottom - panel.getBoundingClientRect().top}px`;
  }

  function hide() {
    shown = null;
    cursor.setAttribute("hidden", "");
    tip.hidden = true;
  }

  function under(event) {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    show(everyX.reduce((best, one) => (Math.abs(along(one) - at) < Math.abs(along(best) - at) ? one : best)));
  }

  svg.addEventListener("pointermove", under);
  svg.addEventListener("pointerdown", under);
  panel.addEventListener("pointerleave", hide);
  panel.addEventListener("blur", hide);
  panel.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const to = { ArrowRight: 1, ArrowLeft: -1, Home: -everyX.length, End: everyX.length }[event.key];
    if (!to) return;
    event.preventDefault();
    const index = shown === null ? everyX.length - 1 : everyX.indexOf(shown) + to;
    show(everyX[Math.min(Math.max(index, 0), everyX.length - 1)]);
  });
}

function text(tag, name, content) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.textContent = content;
  return element;
}
