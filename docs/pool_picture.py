"""Draw docs/pool.svg, the picture in the README: two steps of SRS, from a trace of the reference.

python docs/pool_picture.py
"""

from __future__ import annotations

from pathlib import Path

from replenish.reference import ReferencePool

STEPS = [[1, 4], [0, 1]]  # the slots of the paper's figure 1
COLOURS = ["#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756"]
SIZE, GAP = 34, 6


def cell(x: float, y: float, sample: int, *, ring: str = "none", faint: bool = False) -> str:
    centre = (x + SIZE / 2, y + SIZE / 2 + 5)
    return (
        f'<rect x="{x}" y="{y}" width="{SIZE}" height="{SIZE}" rx="6" fill="{COLOURS[sample - 1]}" stroke="{ring}" '
        f'stroke-width="3" opacity="{0.45 if faint else 1}"/>'
        f'<text x="{centre[0]}" y="{centre[1]}" text-anchor="middle" fill="#fff" font-weight="bold">{sample}</text>'
    )


def row(x: float, y: float, samples: list[int], rings: dict[int, str]) -> str:
    return "".join(
        cell(x + place * (SIZE + GAP), y, sample, ring=rings.get(place, "none")) for place, sample in enumerate(samples)
    )


def label(x: float, y: float, text: str, *, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" fill="#8a8f98" font-weight="{weight}">{text}</text>'


def picture() -> str:
    """Return the SVG: a column a step, from the pool over the batch to the refilled pool."""
    pool = ReferencePool([1, 2, 3, 4, 5])
    parts, width = [], 5 * (SIZE + GAP)
    for number, slots in enumerate(STEPS):
        x = 20 + number * (width + 210)
        drawn = dict.fromkeys(slots, "#f2c14e")
        parts += [label(x, 24, f"step {number + 1}", weight="bold"), label(x, 50, "pool: draw at random")]
        parts.append(row(x, 60, pool.pool, drawn))
        queue = list(pool.queue)
        batch = pool.step(slots)
        parts += [label(x + width + 20, 50, "batch"), row(x + width + 20, 60, batch, {})]
        parts.append(f'<path d="M {x + width + 2} {60 + SIZE / 2} h 12" stroke="#8a8f98" stroke-width="2"/>')
        parts += [
            label(x, 132, "queue: the next of the sequence"),
            row(x, 142, queue, dict.fromkeys(range(2), "#54d1b0")),
        ]
        parts += [label(x + width + 20, 246, "pool: refilled"), row(x, 224, pool.pool, dict.fromkeys(slots, "#54d1b0"))]
        for place, slot in enumerate(slots):
            start = x + place * (SIZE + GAP) + SIZE / 2
            end = x + slot * (SIZE + GAP) + SIZE / 2
            parts.append(
                f'<path d="M {start} {142 + SIZE} C {start} 200, {end} 200, {end} 222" fill="none" stroke="#54d1b0" '
                f'stroke-width="2"/>'
            )
    total = 2 * width + 330
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} 272" width="{total}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="Two steps of sequenced-replacement sampling">{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    (Path(__file__).parent / "pool.svg").write_text(picture())
