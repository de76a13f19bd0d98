// Values at an epoch, under the pointer or the arrow keys. Without this script the page still has all its values.
"use strict";
for (const figure of document.querySelectorAll("figure.curves")) {
  const data = JSON.parse(figure.querySelector("script.data").textContent);
  for (const panel of figure.querySelectorAll(".panel")) readable(panel, data);
}

function readable(panel, data) {
  const svg = panel.querySelector("svg.chart");
  const cursor = svg.querySelector(".cursor");
  const tip = panel.querySelector(".tip");
  const { left, right, epochs } = Object.fromEntries(Object.entries(svg.dataset).map(([name, text]) => [name, Number(text)]));
  const quantity = panel.dataset.quantity;
  const digits = quantity === "train_loss" ? 3 : 2;
  const known = [...new Set(data.lines.flatMap((line) => line.epochs))].sort((a, b) => a - b);
  if (!known.length) return;
  let shown = null;

  function show(epoch) {
    shown = epoch;
    const at = left + (epoch / epochs) * (right - left);
    cursor.setAttribute("x1", at);
    cursor.setAttribute("x2", at);
    cursor.removeAttribute("hidden");
    tip.replaceChildren(text("p", "epoch", `Epoch ${epoch}`));
    data.lines.forEach((line, index) => {
      const place = line.epochs.indexOf(epoch);
      const value = place < 0 ? null : line[quantity].median[place];
      if (value === null) return;
      const low = line[quantity].low[place].toFixed(digits);
      const high = line[quantity].high[place].toFixed(digits);
      const row = text("p", `value-of c${index % 6}`, "");
      const range = line.runs.length > 1 ? ` (${low}–${high})` : "";
      row.append(document.createElement("i"), text("span", "", line.label), text("b", "", value.toFixed(digits) + range));
      tip.append(row);
    });
    tip.hidden = false;
    const scale = svg.clientWidth / svg.viewBox.baseVal.width;
    const room = panel.clientWidth - tip.offsetWidth;
    const beside = at * scale + 14;
    tip.style.left = `${Math.max(0, beside <= room ? beside : Math.min(room, at * scale - tip.offsetWidth - 14))}px`;
    // Below the picture, so that it hides no line.
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
    const epoch = ((at - left) / (right - left)) * epochs;
    show(known.reduce((best, one) => (Math.abs(one - epoch) < Math.abs(best - epoch) ? one : best)));
  }

  svg.addEventListener("pointermove", under);
  svg.addEventListener("pointerdown", under);
  panel.addEventListener("pointerleave", hide);
  panel.addEventListener("blur", hide);
  panel.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    const place = shown === null ? known.length - 1 : known.indexOf(shown) + step;
    show(known[Math.min(Math.max(place, 0), known.length - 1)]);
  });
}

function text(tag, name, content) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  element.textContent = content;
  return element;
}
