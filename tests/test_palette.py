"""An order has one look everywhere, and looks can be told apart, also by the colour-blind."""

from __future__ import annotations

from replenish.orders import ORDERS
from replenish.palette import HUES, MARKS, Look, free_look, look_of

#: Those that most charts have, with looks of their own.
NAMED = ("srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop")


def test_orders_of_the_lab_differ_in_colour_and_in_mark() -> None:
    looks = {name: look_of(name) for name in NAMED}
    assert len({look.hue for look in looks.values()}) == len({look.mark for look in looks.values()}) == len(looks)
    for name in NAMED:
        assert look_of(ORDERS[name].order_class.__name__) == looks[name]
    assert look_of("SRS") == looks["srs"]


def test_an_unknown_order_has_one_look_for_ever_which_is_no_known_ones() -> None:
    known = {look_of(name) for name in NAMED}
    names = ["shuffle-buffer", "block-shuffle", "jitter", "poisson", "balls-in-bins", "stratified", "weighted"]
    looks = [look_of(name) for name in names]
    assert not known & set(looks)
    assert look_of("jitter") == Look(hue=6, mark=2)  # whatever Python, machine or day
    every = {look_of(f"order {number}") for number in range(500)}
    assert all(0 <= look.hue < len(HUES) and 0 <= look.mark < len(MARKS) for look in every)
    assert not known & every
    assert len({free_look(place) for place in range(8)}) == 8
