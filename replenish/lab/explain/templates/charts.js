// The charts under the stage: what the three orders have drawn so far.

const orderNames = { srs: "SRS", reshuffling: "Reshuffling", replacement: "Replacement" };
const orders = Object.keys(orderNames);
const countedUp = (amount, one, many) => `${amount} ${amount === 1 ? one : many}`;

function tally(batches, steps) {
  const counts = new Array(trace.num_samples).fill(0);
  for (let step = 0; step < steps; step += 1) for (const sample of batches[step]) counts[sample] += 1;
  return counts;
}

// An empty chart as wide as its container, with grid lines at 1, 2 or 5 times a power of ten, about four of them.
function axes(width, { height, left, top, label }) {
  const bottom = 20, right = 8, svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  const y = (value) => height - bottom - (value / top) * (height - bottom - 14);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, top / 4)));
  const step = [1, 2, 5, 10].map((times) => times * power).find((each) => top / each <= 5);
  for (let value = 0; value <= top; value += step) {
    svg.append(draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, value));
  }
  return { svg, y, end: width - right };
}

const charts = {
  panels: {},
  widths: new Map(), // of the charts; measured when the page's width changes, not at every step

  build() {
    for (const order of orders) {
      const name = orderNames[order];
      const panel = {
        batch: make("ul", { class: "tiles", "aria-label": `The batch of ${name}` }),
        note: make("p", {}),
        chart: make("div", { class: "chart", id: `counts-${order}` }),
      };
      const head = make("figcaption", {}, make("h3", {}, name), panel.note);
      const axis = make("p", { class: "axis" }, "draws per sample; dotted: mean");
      byId("orders").append(make("figure", { class: `card order ${order}` }, head, panel.batch, panel.chart, axis));
      this.panels[order] = panel;
      const key = draw("svg", { viewBox: "0 0 36 14", width: 36, height: 14, "aria-hidden": "true" });
      key.append(draw("path", { class: "line", d: "M1 7H35" }), draw("path", { class: "dot", d: marks[order], transform: "translate(18 7)" }));
      byId("unseen-legend").append(make("li", { class: order }, key, make("span", { id: `unseen-${order}` })));
    }
    byId("numbers").addEventListener("toggle", () => this.table());
  },

  fit() {
    for (const chart of document.querySelectorAll(".chart")) this.widths.set(chart, Math.max(200, chart.clientWidth));
  },

  render(frame) {
    const scene = stage.scene(frame);
    this.drawnSteps = scene.last + 1; // a batch counts as soon as it is drawn
    const counts = Object.fromEntries(orders.map((order) => [order, tally(trace.batches[order], this.drawnSteps)]));
    const top = Math.max(3, ...Object.values(counts).flat());
    const emptied = new Set(scene.drawn ? scene.slots : []);
    const copies = new Array(trace.num_samples).fill(0);
    scene.pool.forEach((sample, slot) => { if (!emptied.has(slot)) copies[sample] += 1; });
    for (const order of orders) this.panel(order, counts[order], scene.last, top);
    this.unseen();
    const none = copies.filter((copy) => copy === 0).length, have = countedUp(none, "sample has", "samples have");
    byId("copies-note").textContent = none ? `${have} none and cannot be drawn now` : "every sample can be drawn now";
    const label = `Copies of each sample in the pool: ${Math.min(...copies)} to ${Math.max(...copies)}; ${have} none.`;
    const mean = trace.pool_size / trace.num_samples;
    this.bars(byId("copies-chart"), copies, { order: "srs", top: Math.max(3, ...copies), now: new Set(scene.gone), mean, label });
    this.numbers = { counts, copies };
    this.table();
  },

  panel(order, counts, last, top) {
    const { batch, note, chart } = this.panels[order];
    const drawn = last < 0 ? [] : trace.batches[order][last];
    const shown = drawn.length > 16 ? drawn.slice(0, 14) : drawn;
    batch.replaceChildren(...shown.map((sample) => tile(sample, "", "li")));
    if (shown.length < drawn.length) batch.append(make("li", { class: "more" }, `and ${drawn.length - shown.length} more`));
    const least = Math.min(...counts), most = Math.max(...counts);
    const unseen = trace.unseen[order][this.drawnSteps];
    note.textContent = last < 0 ? "nothing drawn yet" : `${least === most ? countedUp(most, "draw", "draws") : `${least} to ${most} draws`} per sample, ${unseen} not drawn yet`;
    const label = `${orderNames[order]} after ${countedUp(this.drawnSteps, "step", "steps")}: ${note.textContent}.`;
    const total = counts.reduce((sum, count) => sum + count, 0);
    this.bars(chart, counts, { order, top, now: new Set(drawn), mean: total / trace.num_samples, label });
  },

  bars(container, values, { order, top, now, mean, label }) {
    const left = 24, { svg, y, end } = axes(this.widths.get(container), { height: 150, left, top, label });
    svg.setAttribute("class", order);
    const pitch = (end - left) / values.length, space = pitch > 6 ? Math.min(10, pitch * 0.25) : 0;
    const named = [1, 2, 5, 10, 20, 50, 100].find((each) => pitch * each >= 26) ?? 200;
    const above = [draw("line", { class: "mean", x1: left, x2: end, y1: y(mean), y2: y(mean) })];
    values.forEach((value, sample) => {
      const x = left + sample * pitch;
      const box = { x: x + space / 2, y: y(value), width: pitch - space + (space ? 0 : 0.4), height: Math.max(0, y(0) - y(value)), rx: pitch > 12 ? 2 : 0 };
      const bar = draw("rect", { class: now.has(sample) ? "bar now" : "bar", "data-sample": sample, "data-count": value, ...box });
      bar.append(draw("title", {}, `sample ${sample}: ${value}`));
      svg.append(bar);
      const centre = { x: x + pitch / 2, "text-anchor": "middle" };
      if (pitch >= 18 && value > 0) above.push(draw("text", { class: "value", y: y(value) - 3, ...centre }, value));
      if (sample % named === 0) svg.append(draw("text", { y: 145, ...centre }, sample));
    });
    svg.append(...above);
    container.replaceChildren(svg);
  },

  unseen() {
    const container = byId("unseen-chart"), now = this.drawnSteps, left = 30;
    const values = orders.map((order) => `${orderNames[order]} ${trace.unseen[order][now]}`);
    const label = `Samples not drawn yet after ${countedUp(now, "step", "steps")}: ${values.join(", ")}.`;
    const { svg, y, end } = axes(this.widths.get(container), { height: 170, left, top: trace.num_samples, label });
    const x = (step) => left + (step / trace.steps) * (end - left);
    svg.append(draw("text", { x: x(0), y: 165 }, "0 steps"), draw("text", { x: x(trace.steps), y: 165, "text-anchor": "end" }, trace.steps));
    svg.append(draw("line", { class: "cursor", x1: x(now), x2: x(now), y1: 8, y2: y(0) }));
    for (const order of [...orders].reverse()) {
      const points = trace.unseen[order].map((value, step) => `${x(step).toFixed(1)},${y(value).toFixed(1)}`);
      const value = trace.unseen[order][now], place = `translate(${x(now)} ${y(value)})`;
      svg.append(draw("polyline", { class: `line ahead ${order}`, points: points.join(" ") }));
      svg.append(draw("polyline", { class: `line ${order}`, points: points.slice(0, now + 1).join(" ") }));
      svg.append(draw("path", { class: `dot ${order}`, d: marks[order], transform: `${place} scale(1.3)`, "data-count": value }));
      byId(`unseen-${order}`).textContent = `${orderNames[order]} ${value}`;
    }
    byId("unseen-note").textContent = `after ${countedUp(now, "step", "steps")}`;
    container.replaceChildren(svg);
  },

  table() {
    if (!byId("numbers").open) return;
    const { counts, copies } = this.numbers;
    byId("numbers-caption").textContent = `After ${countedUp(this.drawnSteps, "draw", "draws")} of a batch, of ${trace.steps}`;
    byId("numbers-rows").replaceChildren(
      ...copies.map((copy, sample) => {
        const cells = [...orders.map((order) => counts[order][sample]), copy];
        return make("tr", {}, make("th", { scope: "row" }, String(sample)), ...cells.map((cell) => make("td", {}, String(cell))));
      }),
    );
  },
};
