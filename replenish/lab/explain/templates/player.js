// The player: which frame is shown, how it advances, and its controls: buttons, scrubber, keys, address.

const speeds = [0.25, 0.5, 1, 2, 4, 8, 16, 64];
const phaseTime = 1300; // milliseconds of a draw or a refill at speed 1
const travelShare = 0.6; // the share of it in which samples move; the rest is for looking
const stillMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

const listed = (values) => {
  const shown = values.length > 9 ? [...values.slice(0, 8), `${values.length - 8} more`] : values.map(String);
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown[shown.length - 1]}`;
};

const player = {
  frame: 0,
  playing: false,
  stepping: false, // whether it is between the draw and the refill of a requested step
  timer: 0,
  speed: 1,

  show(frame) {
    this.frame = Math.max(0, Math.min(lastFrame, frame));
    stage.render(this.frame);
    this.tell();
  },

  // Advance by one phase: animated, unless the reader prefers no motion or the speed is too high.
  advance() {
    const duration = (phaseTime * travelShare) / this.speed;
    if (stillMotion.matches || duration < 80) {
      this.show(this.frame + 1);
      return;
    }
    this.frame += 1;
    stage.move(this.frame, duration);
    this.tell();
  },

  tell() {
    const scene = stage.scene(this.frame), root = document.documentElement;
    root.dataset.step = scene.step;
    root.dataset.phase = scene.drawn ? "drawn" : "rest";
    byId("count").replaceChildren(make("strong", {}, String(scene.step)), ` of ${countedUp(trace.steps, "step", "steps")} done`);
    byId("phase-draw").classList.toggle("now", scene.drawn);
    byId("phase-refill").classList.toggle("now", !scene.drawn && scene.last >= 0);
    byId("sentence").replaceChildren(...this.sentence(scene));
    byId("code").textContent = scene.last < 0 ? "order.samples_in_pool(0)" : this.code(scene);
    byId("scrub").value = scene.step;
    byId("scrub").setAttribute("aria-valuetext", `${scene.step} of ${trace.steps} steps done`);
    // A disabled button would lose the keyboard focus.
    for (const [id, off] of [["start", this.frame === 0], ["back", this.frame === 0], ["forward", this.frame === lastFrame], ["end", this.frame === lastFrame]]) {
      byId(id).setAttribute("aria-disabled", off);
    }
    charts.render(this.frame);
  },

  sentence(scene) {
    if (scene.last < 0) {
      return trace.pool_size === trace.num_samples
        ? ["The pool holds every sample once, and the queue is at the start of the sequence again."]
        : [`The pool holds the first ${trace.pool_size} of the sequence, and the queue continues from there.`];
    }
    const one = trace.batch_size === 1, plural = one ? "" : "s";
    const drawn = make("b", { class: "draw" }, `${scene.drawn ? "sample" : "Sample"}${plural} ${listed(scene.batch)}`);
    const parts = scene.drawn
      ? [`Step ${scene.last + 1}, draw: `, drawn, one ? " leaves" : " leave", ` slot${plural} ${listed(scene.slots)} and ${one ? "is" : "make"} the batch.`]
      : [`Step ${scene.last + 1}. `, drawn, one ? " was" : " were", ` drawn from slot${plural} ${listed(scene.slots)}, now refilled with `,
        make("b", { class: "refill" }, `${one ? "sample" : "samples"} ${listed(scene.gone)}`), ", the next of the queue."];
    const twice = scene.batch.find((sample, place) => scene.batch.indexOf(sample) !== place);
    if (twice !== undefined) parts.push(` Sample ${twice} is in the batch more than once: more than one slot held it.`);
    return parts;
  },

  code(scene) {
    const batch = scene.batch.length > 12 ? `[${scene.batch.slice(0, 12).join(", ")}, …]` : `[${scene.batch.join(", ")}]`;
    return `order.batch(${scene.last}) = ${batch}${scene.drawn ? "" : ` · order.samples_in_pool(${scene.step})`}`;
  },

  play() {
    if (this.frame === lastFrame) this.show(0);
    this.setPlaying(true);
    this.tick();
  },

  tick() {
    if (this.frame === lastFrame) {
      this.pause();
      return;
    }
    // Too fast to see phases: whole steps.
    const whole = phaseTime / this.speed < 100;
    if (whole) this.show(2 * (stepsDone(this.frame) + 1));
    else this.advance();
    this.timer = window.setTimeout(() => this.tick(), (whole ? 2 : 1) * phaseTime / this.speed);
  },

  pause() {
    this.setPlaying(false);
    this.address();
  },

  setPlaying(playing) {
    window.clearTimeout(this.timer);
    this.stepping = false;
    this.playing = playing;
    document.documentElement.dataset.playing = playing;
    byId("play").setAttribute("aria-label", playing ? "Pause" : "Play");
    byId("play-word").textContent = playing ? "Pause" : "Play";
    // A screen reader cannot follow a fast run, so it reads only after a pause.
    byId("sentence").setAttribute("aria-live", playing && this.speed > 1 ? "off" : "polite");
  },

  toggle() { if (this.playing) this.pause(); else this.play(); },

  seek(frame) {
    this.setPlaying(false);
    this.show(frame);
    this.address();
  },

  back() { this.seek(2 * (isDrawn(this.frame) ? stepsDone(this.frame) : stepsDone(this.frame) - 1)); },

  // A whole step: its draw, then its refill. A second call in between finishes the step at once.
  forward(atOnce) {
    if (this.stepping) this.seek(this.frame + 1);
    this.setPlaying(false);
    if (stillMotion.matches || atOnce || this.frame === lastFrame) {
      this.seek(2 * (stepsDone(this.frame) + 1));
    } else if (isDrawn(this.frame)) {
      this.phase(1);
    } else {
      this.advance();
      this.stepping = true;
      this.timer = window.setTimeout(() => this.phase(1), (phaseTime * 0.75) / this.speed);
    }
  },

  phase(by) {
    this.setPlaying(false);
    if (by > 0 && this.frame < lastFrame) this.advance();
    else this.show(this.frame + by);
    this.address();
  },

  setSpeed(speed) {
    this.speed = speed;
    byId("speed").value = speed;
    if (!this.playing) return;
    this.setPlaying(true);
    this.timer = window.setTimeout(() => this.tick(), phaseTime / speed);
  },

  faster(by) { this.setSpeed(speeds[Math.max(0, Math.min(speeds.length - 1, speeds.indexOf(this.speed) + by))]); },

  // The address names the frame and the sizes, so that a link shows the same: #step=7, #step=7.5 between the draw and
  // the refill of a step, #step=7&n=20&b=4&pool=20&seed=3 with sizes that were changed in the page.
  address() {
    try {
      window.history.replaceState(null, "", `#step=${this.frame / 2}${sizes.address()}`);
    } catch {
      // an embedded page may have no address to change
    }
  },

  fromAddress() {
    const wanted = new URLSearchParams(window.location.hash.slice(1)), step = wanted.get("step") ?? "";
    const resized = sizes.fromAddress(wanted), known = /^\d+(?:\.5)?$/.test(step);
    if (known) this.seek(2 * Number(step));
    return known || resized;
  },

  // Play as soon as the page is visible, from the end of the first epoch, when the charts have something to show. Do not
  // if the reader prefers no motion, or does something first.
  open() {
    this.show(2 * Math.min(trace.steps, Math.ceil(trace.num_samples / trace.batch_size)));
    if (stillMotion.matches) return;
    const seen = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      seen.disconnect();
      this.play();
    });
    seen.observe(stage.root);
    for (const kind of ["pointerdown", "keydown", "hashchange"]) window.addEventListener(kind, () => seen.disconnect(), { once: true, capture: true });
  },
};

const keys = {
  " ": () => player.toggle(),
  ArrowLeft: () => player.back(),
  ArrowRight: (event) => player.forward(event.repeat), // the key is held down: no time to look
  ",": () => player.phase(-1),
  ".": () => player.phase(1),
  Home: () => player.seek(0),
  End: () => player.seek(lastFrame),
  "+": () => player.faster(1),
  "=": () => player.faster(1),
  "-": () => player.faster(-1),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys) || event.target.closest?.("#sizes")) return;
  // The focused control keeps its own keys: space on a button, arrows on the speed and the table.
  const name = event.target.tagName;
  if (event.key === " " && ["BUTTON", "SUMMARY", "SELECT"].includes(name)) return;
  if (name === "SELECT" || event.target.className === "scroll") return;
  event.preventDefault();
  keys[event.key](event);
});

// Replace the trace on the stage.
function show(other) {
  player.setPlaying(false);
  trace = other;
  lastFrame = 2 * trace.steps;
  stage.build();
  byId("scrub").max = trace.steps;
  byId("pool-note").textContent = `${trace.pool_size} slots, any of them may be drawn`;
  if (width < 0) return; // nothing is laid out yet
  stage.fit();
  player.show(2 * Math.min(trace.steps, Math.ceil(trace.num_samples / trace.batch_size)));
}

let width = -1;
charts.build();
show(trace);
sizes.build();
for (const speed of speeds) byId("speed").append(make("option", { value: speed }, `${{ 0.25: "¼", 0.5: "½" }[speed] ?? speed}×`));
player.setSpeed(1);
player.setPlaying(false);
for (const [id, action] of Object.entries({
  play: () => player.toggle(), start: () => player.seek(0), end: () => player.seek(lastFrame), back: () => player.back(), forward: () => player.forward(),
})) byId(id).addEventListener("click", action);
byId("scrub").addEventListener("input", () => player.seek(2 * Number(byId("scrub").value)));
byId("speed").addEventListener("change", () => player.setSpeed(Number(byId("speed").value)));
window.addEventListener("hashchange", () => player.fromAddress());
function fit() {
  if (stage.root.clientWidth === width) return; // only the height changed, and nothing depends on it
  width = stage.root.clientWidth;
  stage.fit();
  charts.fit();
  player.show(player.frame);
}
fit();
new ResizeObserver(fit).observe(stage.root);
if (!player.fromAddress()) player.open();
