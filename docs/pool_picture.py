"""Draw two steps of SRS (docs/pool.svg) and the pool at work (docs/pool_moving.svg), from the explorer's trace.

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
    ("#ffc99b", "#74420a"),
    ("#c6d9a0", "#43581c"),
    ("#c9ccff", "#45498a"),
)

# The moving picture: eight samples, six steps, and the seconds per step.
MOVING_SAMPLES, MOVING_STEPS, SECONDS = 8, 6, 3.0
MOVING_LEFT = 92


def rules(ground: int, samples: int = SAMPLES) -> str:
    """Return the colours on light (0) or dark (1) ground."""
    colour = {name: pair[ground] for name, pair in COLOURS.items()}
    tiles = "".join(f".s{sample}{{fill:{pair[ground]}}}" for sample, pair in enumerate(TILES[:samples]))
    return (
        f"text{{fill:{colour['ink']}}}.quiet{{fill:{colour['soft']}}}.divide{{stroke:{colour['hair']}}}"
        f".card{{fill:{colour['sheet']}}}.draw{{stroke:{colour['draw']}}}.refill{{stroke:{colour['refill']}}}"
        f".hole{{fill:{colour['draw-soft']}}}.head-draw{{fill:{colour['draw']}}}.head-refill{{fill:{colour['refill']}}}"
        f"{tiles}"
    )


def middle(x: float, place: int) -> float:
    return x + place * (TILE + GAP) + TILE / 2


def tile(x: float, y: float, place: int, sample: int | None, kind: str = "") -> str:
    """Return one sample: plain, ringed as drawn or refilled, or the dashed place of a sample that has left."""
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
    # The picture has its own background: a page may be dark while the system is light, and vice versa.
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


def moving_picture() -> str:
    """Return the animated SVG: a tile per position of the sequence moves from the queue to a slot to a batch."""
    trace = compute_trace(num_samples=MOVING_SAMPLES, batch_size=2, steps=MOVING_STEPS, seed=SEED)
    waiting = 6  # places of the queue that are shown
    # The trace's sequence is the dataset's own order.
    samples = [position % MOVING_SAMPLES for position in range(MOVING_SAMPLES + 2 * MOVING_STEPS + waiting)]
    slot_of = dict(enumerate(range(MOVING_SAMPLES)))  # the slot of every position that is in the pool
    # For each position its moves: (seconds, x, y, opacity).
    moves: list[list[tuple[float, float, float, float]]] = [
        [(0.0, _place(number), POOL, 1.0)]
        if number < MOVING_SAMPLES
        else [(0.0, _place(number - MOVING_SAMPLES), QUEUE, _seen(number - MOVING_SAMPLES, waiting))]
        for number in range(len(samples))
    ]

    def move(position: int, start: float, x: float, y: float, opacity: float, seconds: float = 0.6) -> None:
        last = moves[position][-1]
        moves[position] += [(start, *last[1:]), (start + seconds, x, y, opacity)]

    for number in range(MOVING_STEPS):
        begin, taken = number * SECONDS, MOVING_SAMPLES + 2 * number
        for place, slot in enumerate(trace.step(number).slots.tolist()):
            drawn = next(position for position, held in slot_of.items() if held == slot)
            del slot_of[drawn]
            move(drawn, begin + 0.3, _place(place), BATCH, 1.0)
            slot_of[taken + place] = slot
            move(taken + place, begin + 1.3, _place(slot), POOL, 1.0)
            move(drawn, begin + SECONDS - 0.3, _place(place), BATCH, 0.0, 0.25)
        for position in range(taken + 2, len(samples)):
            place = position - taken - 2
            if place < waiting + 2:
                move(position, begin + 1.5, _place(place), QUEUE, _seen(place, waiting))
    total = MOVING_STEPS * SECONDS
    width = MOVING_LEFT + MOVING_SAMPLES * (TILE + GAP) + 22
    rows = (("Queue", QUEUE - 34), ("Pool", POOL - 34), ("Batch", BATCH - 34))
    parts = [f'<rect x=".5" y=".5" width="{width - 1:g}" height="{HEIGHT - 35}" rx="10" class="card divide"/>']
    parts += [f'<text x="20" y="{y + 21}" class="name">{name}</text>' for name, y in rows]
    parts += [
        f'<rect x="{_place(slot) + 2:g}" y="{POOL - 32}" width="{TILE - 4}" height="{TILE - 4}" rx="5" class="hole"/>'
        for slot in range(MOVING_SAMPLES)
    ]
    keyframes = []
    for number, (sample, path) in enumerate(zip(samples, moves, strict=True)):
        stops = "".join(
            f"{100 * seconds / total:.4g}%{{transform:translate({x:g}px,{y - 34:g}px);opacity:{opacity:g}}}"
            for seconds, x, y, opacity in [*path, (total, *path[-1][1:])]
        )
        keyframes.append(f"@keyframes m{number}{{{stops}}}#m{number}{{animation-name:m{number}}}")
        _, x, y, opacity = path[0]
        parts.append(
            f'<g id="m{number}" transform="translate({x:g} {y - 34:g})" opacity="{opacity:g}">'
            f"{tile(0, 0, 0, sample)}</g>"
        )
    style = (
        "text{font:14px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}.name{font-weight:700}"
        ".number{font-weight:600;text-anchor:middle}"
        f"{rules(0, MOVING_SAMPLES)}@media (prefers-color-scheme:dark){{{rules(1, MOVING_SAMPLES)}}}"
        "@media (prefers-reduced-motion:no-preference){"
        f"g{{animation:{total:g}s linear infinite}}{''.join(keyframes)}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {HEIGHT - 34}" width="{width:g}" role="img" '
        f'aria-label="Six steps of sequenced-replacement sampling"><style>{style}</style>{"".join(parts)}</svg>\n'
    )


def _place(place: int) -> float:
    return MOVING_LEFT + place * (TILE + GAP)


def _seen(place: int, waiting: int) -> float:
    return 1.0 if place < waiting else 0.0


if __name__ == "__main__":
    folder = Path(__file__).parent
    (folder / "pool.svg").write_text(picture(), encoding="utf-8")
    (folder / "pool_moving.svg").write_text(moving_picture(), encoding="utf-8")
