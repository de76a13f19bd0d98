"""Draw docs/pool.svg, the picture in the README: two steps of SRS, from the trace that the explorer plays.

python docs/pool_picture.py
"""

from __future__ import annotations

from pathlib import Path

from replenish.diagnostics import Step, compute_trace
from replenish.palette import COLOURS

SEED = 390  # draws the slots of the paper's figure 1, in which the second batch has a sample twice
STEPS = 2
SAMPLES = 5
TILE, GAP = 32, 4
LEFT, PANEL = 84, 5 * (TILE + GAP) + 24  # where the panels begin; the width of one
QUEUE, POOL, BATCH = 50, 122, 194  # the top of each row
HEIGHT = BATCH + TILE + 18

TILES = (
    ("#ffbfb8", "#7c3834"),
    ("#e4d594", "#5f4f00"),
    ("#9be7cb", "#006047"),
    ("#a2dcff", "#0c557f"),
    ("#e8c4fd", "#623f75"),
)


def rules(ground: int) -> str:
    """Return the colours on light (0) or dark (1) ground."""
    colour = {name: pair[ground] for name, pair in COLOURS.items()}
    tiles = "".join(f".s{sample}{{fill:{pair[ground]}}}" for sample, pair in enumerate(TILES))
    return (
        f"text{{fill:{colour['ink']}}}.quiet{{fill:{colour['soft']}}}.divide{{stroke:{colour['hair']}}}"
        f".card{{fill:{colour['sheet']}}}.draw{{stroke:{colour['draw']}}}.refill{{stroke:{colour['refill']}}}"
        f".hole{{fill:{colour['draw-soft']}}}.head-draw{{fill:{colour['draw']}}}.head-refill{{fill:{colour['refill']}}}"
        f"{tiles}"
    )


def middle(x: float, place: int) -> float:
    return x + place * (TILE + GAP) + TILE / 2


def tile(x: float, y: float, place: int, sample: int | None, kind: str = "") -> str:
    """Return one sample: plain, ringed as drawn or refilled, or only the dashed place that one has left."""
    left = x + place * (TILE + GAP)
    box = f'x="{left + 1:g}" y="{y + 1}" width="{TILE - 2}" height="{TILE - 2}" rx="6"'
    number = f'<text x="{left + TILE / 2:g}" y="{y + 21}" class="number{{}}">{sample}</text>'
    if kind == "hole":
        return f'<rect {box} class="hole draw dashed"/>'
    if kind == "gone":
        return f'<rect {box} class="none refill dashed"/>' + number.format(" quiet")
    return f'<rect {box} class="s{sample} {kind}"/>' + number.format("")


def arrow(start: tuple[float, float], end: tuple[float, float], kind: str) -> str:
    (x, y), (to_x, to_y) = start, end
    half = (y + to_y) / 2
    return (
        f'<path d="M{x:g} {y}C{x:g} {half:g} {to_x:g} {half:g} {to_x:g} {to_y - 6}" class="none {kind}"/>'
        f'<path d="M{to_x:g} {to_y}l-4.5 -8h9z" class="head-{kind}"/>'
    )


def drawn_panel(x: float, step: Step) -> list[str]:
    slots = step.slots.tolist()
    parts = [tile(x, QUEUE, place, sample) for place, sample in enumerate(step.queue[:SAMPLES].tolist())]
    for slot, sample in enumerate(step.pool_before.tolist()):
        parts.append(tile(x, POOL, slot, None, "hole") if slot in slots else tile(x, POOL, slot, sample))
    for place, (slot, sample) in enumerate(zip(slots, step.batch.tolist(), strict=True)):
        parts.append(tile(x, BATCH, place, sample, "draw"))
        parts.append(arrow((middle(x, slot), POOL + TILE), (middle(x, place), BATCH - 1), "draw"))
    return parts


def refilled_panel(x: float, step: Step) -> list[str]:
    slots = step.slots.tolist()
    parts = []
    for place, sample in enumerate(step.queue[:SAMPLES].tolist()):
        parts.append(tile(x, QUEUE, place, sample, "gone" if place < len(slots) else ""))
    for slot, sample in enumerate(step.pool_after.tolist()):
        parts.append(tile(x, POOL, slot, sample, "refill" if slot in slots else ""))
    for place, slot in enumerate(slots):
        parts.append(arrow((middle(x, place), QUEUE + TILE), (middle(x, slot), POOL - 1), "refill"))
    parts.append(f'<text x="{x}" y="{BATCH + 21}" class="quiet">the batch is trained on</text>')
    return parts


def picture() -> str:
    """Return the SVG: for each step a panel of its draw and one of its refill."""
    trace = compute_trace(num_samples=SAMPLES, batch_size=2, steps=STEPS, seed=SEED)
    width = LEFT + 2 * STEPS * PANEL - 8
    # A card of its own: a page may be dark where the system is light, and the other way round.
    parts = [f'<rect x=".5" y=".5" width="{width - 1}" height="{HEIGHT - 1}" rx="10" class="card divide"/>']
    parts += [
        f'<text x="20" y="{y + 21}" class="name">{name}</text>'
        for name, y in (("Queue", QUEUE), ("Pool", POOL), ("Batch", BATCH))
    ]
    for number in range(STEPS):
        step = trace.step(number)
        for half, (name, draw_panel) in enumerate((("draw", drawn_panel), ("refill", refilled_panel))):
            x = LEFT + (2 * number + half) * PANEL
            parts.append(
                f'<text x="{x}" y="30">step {number + 1}: <tspan class="name head-{name}">{name}</tspan></text>'
            )
            parts += draw_panel(x, step)
            if number or half:
                parts.append(f'<path d="M{x - 14} 16V{HEIGHT - 16}" class="divide"/>')
    style = (
        "text{font:14px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}.name{font-weight:700}"
        ".number{font-weight:600;text-anchor:middle}.none{fill:none}.dashed{stroke-dasharray:4 3}"
        ".draw,.refill{stroke-width:2.5}.dashed.draw,.dashed.refill{stroke-width:1.5}"
        f"{rules(0)}@media (prefers-color-scheme:dark){{{rules(1)}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" role="img" '
        f'aria-label="Two steps of sequenced-replacement sampling"><style>{style}</style>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    (Path(__file__).parent / "pool.svg").write_text(picture(), encoding="utf-8")
