// The stage: queue, pool and batch of one frame of the trace, and the motion of samples between frames.
// Frame 2t is the pool before step t (so after t steps); frame 2t + 1 is step t between its draw and its refill.
// Nothing is sampled here: the trace was computed by the library, or by `sizes.js` where the reader chose other sizes.
"use strict";

let trace = JSON.parse(document.getElementById("trace").textContent);
const byId = (id) => document.getElementById(id);
let lastFrame = 2 * trace.steps;
const stepsDone = (frame) => frame >> 1;
const isDrawn = (frame) => (frame & 1) === 1;

const makeIn = (namespace) => (tag, attributes = {}, ...children) => {
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
// The namespaces are read from the page rather than spelt as addresses.
const make = makeIn(document.body.namespaceURI), draw = makeIn(byId("wires").namespaceURI);

// Neighbours in the data have similar colours, which shows that the refill is in order.
const hue = (sample) => ((sample * 360) / trace.num_samples + 25) % 360;

function tile(sample, classes = "", tag = "span") {
  const element = make(tag, { class: `tile ${classes}` }, sample === null ? "" : String(sample));
  if (sample !== null) {
    element.style.setProperty("--hue", hue(sample));
    element.dataset.sample = sample;
  }
  return element;
}

const stage = {
  root: byId("stage"),
  queue: byId("queue"),
  pool: byId("pool"),
  batch: byId("batch"),
  wires: byId("wires"),
  flight: byId("flight"),
  moving: [],
  landings: [],
  shown: [], // what each slot shows, so that only those that change are written

  // What one frame shows, looked up in the trace.
  scene(frame) {
    const step = stepsDone(frame), drawn = isDrawn(frame);
    const last = drawn ? step : step - 1; // the step whose batch is shown; -1 at the start
    return {
      step, drawn, last,
      pool: trace.pools[step],
      slots: last < 0 ? [] : trace.slots[last],
      batch: last < 0 ? [] : trace.batches.srs[last],
      gone: drawn || last < 0 ? [] : trace.refills[last],
      queue: trace.queues[step],
    };
  },

  render(frame) {
    for (const land of this.landings) land();
    for (const animation of this.moving) animation.cancel();
    this.landings = [];
    this.moving = [];
    const scene = this.scene(frame);
    const touched = new Set(scene.slots);
    scene.pool.forEach((sample, slot) => this.fill(slot, sample, scene.drawn, touched.has(slot)));
    const unused = Array.from({ length: trace.batch_size }, () => null);
    const batch = scene.batch.length ? scene.batch : unused;
    this.batch.replaceChildren(...batch.map((sample) => tile(sample, sample === null ? "unused" : "", "li")));
    const gone = scene.gone.length ? scene.gone : unused;
    this.queue.replaceChildren(
      ...gone.map((sample) => {
        const element = tile(sample, sample === null ? "unused" : "gone", "li");
        element.setAttribute("aria-hidden", "true"); // only a trace of samples that have left; the sentence names them
        return element;
      }),
      ...scene.queue.map((sample, place) => {
        const next = scene.drawn && place < trace.batch_size ? "next" : "";
        return tile(sample, `${next} ${place === 0 ? "head" : ""}`, "li");
      }),
    );
    this.hideWhatDoesNotFit();
    this.connect(scene);
    return scene;
  },

  build() {
    const slot = (_, number) => make("li", { class: "slot", "data-slot": number });
    this.pool.replaceChildren(...Array.from({ length: trace.pool_size }, slot));
    this.shown = [];
  },

  fill(slot, sample, drawn, touched) {
    const empty = drawn && touched, look = touched ? (drawn ? "hole" : "refilled") : "";
    if (this.shown[slot] === `${sample} ${look}`) return;
    this.shown[slot] = `${sample} ${look}`;
    const element = this.pool.children[slot];
    element.dataset.sample = empty ? "" : sample;
    element.replaceChildren(
      make("span", { class: "hidden-text" }, `slot ${slot}: ${empty ? "empty" : "sample"} `),
      tile(empty ? null : sample, look),
      make("small", { "aria-hidden": "true" }, String(slot)),
    );
  },

  // A queue on one line fades out at its end; a wrapped one shows two batches and fills the line.
  hideWhatDoesNotFit() {
    if (!this.queue.classList.contains("wrapped")) return;
    const wanted = Math.ceil((2 * trace.batch_size + 1) / this.columns) * this.columns - 1;
    [...this.queue.children].slice(wanted).forEach((element) => element.remove());
  },

  // The largest tiles with which the pool is not too tall. Smaller tiles if they fit pool and queue, or at least the
  // queue, on one line and are still easy to read.
  fit() {
    const width = this.pool.clientWidth - 8, gap = trace.pool_size > 120 ? 3 : 6;
    const perLine = (size) => Math.max(1, Math.floor((width + gap) / (size + gap)));
    const sizes = [60, 56, 52, 48, 44, 40, 36, 32, 28, 25];
    const queueInLine = (size) => size >= 36 && (width - 14) / (size + gap) >= 2 * trace.batch_size + 1;
    const poolInLine = (size) => size >= 40 && perLine(size) >= trace.pool_size;
    const lowEnough = (size) => Math.ceil(trace.pool_size / perLine(size)) * (size + gap + (trace.pool_size <= 60 ? 16 : 0)) <= 360;
    const size = sizes.find((each) => poolInLine(each) && queueInLine(each))
      ?? sizes.find((each) => lowEnough(each) && queueInLine(each)) ?? sizes.find(lowEnough) ?? sizes[sizes.length - 1];
    this.columns = perLine(size);
    this.root.style.setProperty("--tile", `${size}px`);
    this.root.style.setProperty("--gap", `${gap}px`);
    this.root.classList.toggle("small-numbers", size < 32);
    this.pool.classList.toggle("unnumbered", trace.pool_size > 60 || size < 32);
    this.pool.style.rowGap = this.pool.classList.contains("unnumbered") ? "" : `${gap + 16}px`;
    this.queue.classList.toggle("wrapped", this.columns < 2 * trace.batch_size + 1);
  },

  place(element) {
    const box = element.getBoundingClientRect(), origin = this.root.getBoundingClientRect();
    return { x: box.left - origin.left, y: box.top - origin.top, width: box.width, height: box.height };
  },

  slotTile(slot) { return this.pool.children[slot].querySelector(".tile"); },

  // Lines from the slots to the batch and, after the refill, from the queue to the slots, so that one picture has the whole step.
  connect(scene) {
    const parts = [];
    this.wires.classList.toggle("crossing", trace.pool_size > this.columns);
    if (trace.batch_size <= 16) { // more lines would hide the samples
      const wire = (from, to, name) => {
        const end = to.y - 3, middle = (from.y + end) / 2;
        parts.push(draw("path", { class: name, d: `M${from.x} ${from.y}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${end - 6}` }));
        parts.push(draw("polygon", { class: name, points: `${to.x},${end} ${to.x - 5},${end - 9} ${to.x + 5},${end - 9}` }));
      };
      const numbered = this.pool.classList.contains("unnumbered") ? 0 : 17;
      scene.slots.forEach((slot, place) => {
        const held = this.place(this.slotTile(slot)), batch = this.place(this.batch.children[place]);
        const centre = held.x + held.width / 2;
        wire({ x: centre, y: held.y + held.height + 3 + numbered }, { x: batch.x + batch.width / 2, y: batch.y }, "draw");
        if (scene.drawn) return;
        const left = this.place(this.queue.children[place]);
        wire({ x: left.x + left.width / 2, y: left.y + left.height + 2 }, { x: centre, y: held.y }, "refill");
      });
    }
    this.wires.replaceChildren(...parts);
  },

  // Animate the samples from the frame before `frame`; resolves when they have arrived.
  async move(frame, duration) {
    const before = this.scene(frame - 1), drawing = isDrawn(frame);
    const slots = drawing ? trace.slots[before.step] : before.slots;
    const sources = drawing
      ? slots.map((slot) => this.place(this.slotTile(slot)))
      : slots.map((_, place) => this.place(this.queue.children[trace.batch_size + place]));
    const scene = this.render(frame);
    const samples = drawing ? scene.batch : scene.gone;
    const arrivals = slots.map((slot, place) => (drawing ? this.batch.children[place] : this.slotTile(slot)));
    const places = arrivals.map((arrival) => this.place(arrival)); // read all before the first change, for a single layout
    arrivals.forEach((arrival, each) => {
      this.fly(samples[each], sources[each], places[each], arrival, drawing ? "draw" : "refill", duration);
    });
    if (!drawing && !this.queue.classList.contains("wrapped")) this.shift(sources[0], duration);
    const fade = { duration: duration * 0.3, delay: duration * 0.8, fill: "backwards" };
    this.moving.push(this.wires.animate([{ opacity: 0 }, {}], fade));
    await Promise.allSettled(this.moving.map((animation) => animation.finished));
  },

  fly(sample, from, to, arrival, name, duration) {
    const traveller = tile(sample, name);
    traveller.style.left = `${to.x}px`;
    traveller.style.top = `${to.y}px`;
    arrival.classList.add("arriving");
    this.flight.append(traveller);
    const start = `translate(${from.x - to.x}px, ${from.y - to.y}px)`;
    const frames = [
      { transform: start, easing: "ease-out" },
      { transform: `${start} scale(1.14)`, offset: 0.22, easing: "cubic-bezier(0.5, 0, 0.2, 1)" },
      { transform: "none" },
    ];
    const animation = traveller.animate(frames, { duration, fill: "both" });
    const land = () => {
      if (traveller.isConnected) arrival.classList.remove("arriving");
      traveller.remove();
    };
    animation.finished.then(land, land);
    this.landings.push(land);
    this.moving.push(animation);
  },

  // Move the queue up by a batch, after the samples that left it.
  shift(head, duration) {
    const by = head.x - this.place(this.queue.children[0]).x;
    for (const element of this.queue.children) {
      const timing = { duration: duration * 0.7, delay: duration * 0.3, easing: "ease-in-out", fill: "backwards" };
      this.moving.push(element.animate([{ transform: `translateX(${by}px)` }, { transform: "none" }], timing));
    }
  },
};
