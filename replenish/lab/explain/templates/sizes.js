// Other sizes, drawn in the page by the same method with a small random generator.
// The trace that comes with the page is the library's; its numbers are shown until a size is changed.

// Mulberry32: 32 bits of state, random enough for a picture.
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

// The first `count` of a shuffle of 0 ... size - 1.
function distinct(random, count, size) {
  const all = Array.from({ length: size }, (_, index) => index);
  for (let place = 0; place < count; place += 1) {
    const other = place + Math.floor(random() * (size - place));
    [all[place], all[other]] = [all[other], all[place]];
  }
  return all.slice(0, count);
}

function simulate({ num_samples, batch_size, pool_size, seed, steps }) {
  const random = generator(seed * 7919 + 1), at = (position) => position % num_samples;
  const run = (from, count) => Array.from({ length: count }, (_, index) => at(from + index));
  const ahead = trace.queues[0].length - trace.batch_size + batch_size;
  const found = { num_samples, batch_size, pool_size, seed, steps, sequence: "identity", pools: [run(0, pool_size)], slots: [], refills: [], queues: [run(pool_size, ahead)], batches: { srs: [], reshuffling: [], replacement: [] } };
  let left = [];
  for (let step = 0; step < steps; step += 1) {
    const pool = [...found.pools[step]], slots = distinct(random, batch_size, pool_size);
    const refill = run(pool_size + step * batch_size, batch_size);
    found.batches.srs.push(slots.map((slot) => pool[slot]));
    slots.forEach((slot, place) => { pool[slot] = refill[place]; });
    found.pools.push(pool);
    found.slots.push(slots);
    found.refills.push(refill);
    found.queues.push(run(pool_size + (step + 1) * batch_size, ahead));
    if (left.length === 0) left = distinct(random, num_samples, num_samples); // an epoch may end on a short batch
    found.batches.reshuffling.push(left.splice(0, batch_size));
    found.batches.replacement.push(distinct(random, batch_size, num_samples));
  }
  found.unseen = Object.fromEntries(Object.entries(found.batches).map(([order, batches]) => {
    const seen = new Set();
    return [order, [num_samples, ...batches.map((batch) => { batch.forEach((sample) => seen.add(sample)); return num_samples - seen.size; })]];
  }));
  return found;
}

const sizes = {
  form: byId("sizes"),
  names: ["num_samples", "batch_size", "pool_size", "seed"],
  short: { num_samples: "n", batch_size: "b", pool_size: "pool", seed: "seed" }, // their names in the address
  chosen: null, // the sizes chosen in the page, if they are not the library's

  build() {
    for (const name of this.names) {
      const input = this.form.elements[name];
      input.max = Math.max(input.max, trace[name]);
      input.value = trace[name];
    }
    this.given = byId("shown-sizes").textContent;
    this.form.addEventListener("change", () => this.change());
    this.form.addEventListener("submit", (event) => event.preventDefault());
  },

  // The sizes as a part of the address; "" for the sizes of the library's trace.
  address() {
    return this.chosen === null ? "" : this.names.map((name) => `&${this.short[name]}=${this.chosen[name]}`).join("");
  },

  // Take the sizes from an address, or from the library's trace if it names none. Return whether it named any.
  fromAddress(wanted) {
    const given = JSON.parse(byId("trace").textContent), named = this.names.some((name) => wanted.has(this.short[name]));
    if (!named && (this.chosen === null || !wanted.has("step"))) return false;
    const values = Object.fromEntries(this.names.map((name) => [name, wanted.get(this.short[name]) ?? String(given[name])]));
    if (!wanted.has("pool") && wanted.has("n")) values.pool_size = values.num_samples; // the paper's pool
    if (this.names.every((name) => Number(values[name]) === trace[name])) return named;
    for (const name of this.names) this.form.elements[name].value = values[name];
    this.change();
    return named;
  },

  // Take the sizes if they fit together; otherwise the browser's own validation shows which do not.
  change() {
    const inputs = this.form.elements, wanted = Object.fromEntries(this.names.map((name) => [name, inputs[name].valueAsNumber]));
    const most = Math.min(wanted.num_samples, wanted.pool_size);
    inputs.batch_size.setCustomValidity(wanted.batch_size > most ? `a batch has at most as many samples as there are samples and slots: ${most}` : "");
    if (!this.form.reportValidity()) return;
    const given = JSON.parse(byId("trace").textContent), same = this.names.every((name) => given[name] === wanted[name]);
    this.chosen = same ? null : wanted;
    show(same ? given : simulate({ ...wanted, steps: Math.min(400, Math.max(40, Math.ceil((8 * wanted.num_samples) / wanted.batch_size))) }));
    player.address();
    const command = `replenish explain --n ${wanted.num_samples} --batch-size ${wanted.batch_size} --pool-size ${wanted.pool_size} --seed ${wanted.seed} --open`;
    byId("shown-sizes").textContent = same ? this.given : `${trace.num_samples} samples, a pool of ${trace.pool_size} slots · batches of ${trace.batch_size} · ${trace.steps} steps · seed ${trace.seed}`;
    byId("drawn-by").textContent = same ? "Drawn by the library." : `Drawn in this page. The library's own draws: ${command}`;
  },
};
