// The laws of replenish.theory where B divides N, for n samples, batches of b and a pool of k n slots. A frequency f is
// in cycles per step; u is learning rate times curvature, in (0, 1). All are relative to independent draws. A test
// compares them with Python's.
"use strict";

function dirichlet(angle, count) { // sin(count angle) / sin(angle)
  const sine = Math.sin(angle);
  if (Math.abs(sine) > 1e-9) return Math.sin(count * angle) / sine;
  return Math.cos(angle) < 0 && count % 2 === 0 ? -count : count;
}

const fejer = (f, steps) => dirichlet(Math.PI * f, steps) ** 2 / steps;

// steps - (the sum over |d| < steps of (1 - |d|/steps) (1 - u)^|d|), without cancellation where it is small.
function fejerShortfall(u, steps) {
  if (u * steps > 0.5) {
    const geometric = (2 * (1 - u) * -Math.expm1(steps * Math.log1p(-u))) / (steps * u * u);
    return steps - (2 - u) / u + geometric;
  }
  let total = 0, term = ((steps + 1) * steps) / 2;
  for (let j = 1; j < Math.min(steps, 40); j += 1) {
    term *= (-u * (steps - j)) / (j + 2);
    total += term;
  }
  return (-2 * total) / steps;
}

// r + r^3 + ... of `count` terms, less `count`.
function oddPowers(u, count) {
  const log = Math.log1p(-u), run = Math.expm1(2 * count * log) / Math.expm1(2 * log);
  return Math.expm1(log) * run + (run - count);
}

function langevin(z) { // coth z - 1/z
  if (z > 0.1) return (1 + Math.exp(-2 * z)) / -Math.expm1(-2 * z) - 1 / z;
  const s = z * z;
  return z * (1 / 3 - s * (1 / 45 - s * (2 / 945 - s * (1 / 4725 - (s * 2) / 93555))));
}

// The sum over d of r^|d| ([d is a multiple of steps] - 1/steps): the spectral lines of an epoch that repeats for ever.
function harmonics(u, steps) {
  const log = -Math.log1p(-u);
  return langevin((steps * log) / 2) - langevin(log / 2) / steps;
}

function pool({ n, b, k }) {
  const slots = Math.round(k * n), steps = n / b, p = b / slots, q = 1 - p, finite = n / (n - 1);
  const met = finite * harmonics(p, steps), other = b / (slots - 1);
  const pairs = met / finite - 1 + ((1 + q) / p) / steps, excluded = 1 - (other * (1 + q)) / (p + q * other);
  const height = finite * 2 * q * (1 + pairs * excluded);
  const below = (f) => p * p + 4 * q * Math.sin(Math.PI * f) ** 2;
  const passed = (u) => { // of the lines of the sequence
    const r = 1 - u, line = finite * harmonics(u, steps);
    return ((p / (1 + q)) * (u * (1 + r) * q * met - p * (1 + q) * r * line)) / ((u - p) * (1 - q * r));
  };
  return { p, q, height, below, passed };
}

const laws = {
  independent: { continuous: () => 1, variance: () => 1 },
  replacement: {
    continuous: ({ n, b }) => (n - b) / (n - 1),
    variance: (u, { n, b }) => (n - b) / (n - 1),
  },
  reshuffling: {
    continuous: ({ n, b }, f) => (n / (n - 1)) * (1 - (fejer(f, n / b) * b) / n),
    variance: (u, { n, b }) => ((n / (n - 1)) * fejerShortfall(u, n / b) * b) / n,
  },
  "flip-flop": {
    continuous: ({ n, b }, f) => {
      const steps = n / b, angle = 2 * Math.PI * f, again = Math.cos(steps * angle) * dirichlet(angle, steps);
      return (n / (n - 1)) * (1 + (again - fejer(f, 2 * steps)) / steps);
    },
    variance: (u, { n, b }) => ((n / (n - 1)) * (oddPowers(u, n / b) + fejerShortfall(u, (2 * n) / b)) * b) / n,
  },
  "shuffle-once": {
    continuous: () => 0,
    line: ({ n, b }) => (2 * (n / (n - 1)) * b) / n,
    variance: (u, { n, b }) => (n / (n - 1)) * harmonics(u, n / b),
  },
  srs: {
    continuous: (sizes, f) => {
      const { height, below } = pool(sizes);
      return (height * 2 * Math.sin(Math.PI * f) ** 2) / below(f);
    },
    line: (sizes, f) => {
      const { p, below } = pool(sizes);
      return (laws["shuffle-once"].line(sizes) * p * p) / below(f);
    },
    variance: (u, sizes) => {
      const { p, q, height, passed } = pool(sizes), own = (height * u) / ((1 + q) * (p + q * u));
      if (Math.abs(u - p) >= 1e-5 * p) return own + passed(u);
      const low = passed(p * (1 - 1e-5)), high = passed(p * (1 + 1e-5)); // 0/0 between them, where it is smooth
      return own + (low + high) / 2 + ((high - low) / 2) * ((u - p) / (p * 1e-5));
    },
  },
};

// The factor on the learning rate that gives `order` the variance that `other` has at u, or null where SGD would diverge.
function equivalentRate(order, other, u, sizes) {
  const variance = (name, at) => (at / (2 - at)) * laws[name].variance(at, sizes), wanted = variance(other, u);
  let low = Math.log(u) - 12, high = Math.log(1 - 1e-9);
  if (variance(order, Math.exp(low)) > wanted || variance(order, Math.exp(high)) < wanted) return null;
  for (let round = 0; round < 60; round += 1) {
    const middle = (low + high) / 2;
    if (variance(order, Math.exp(middle)) < wanted) low = middle;
    else high = middle;
  }
  return Math.exp(low) / u;
}
