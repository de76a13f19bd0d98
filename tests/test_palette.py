"""An order has the same look everywhere, and looks can be distinguished, also by colour-blind readers."""

from __future__ import annotations

from replenish.orders import ORDERS
from replenish.palette import HUES, MARKS, Look, free_look, look_of

#: The orders in most charts, with fixed looks.
NAMED = ("srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop")


def test_orders_of_the_lab_differ_in_colour_and_in_mark() -> None:
    looks = {name: look_of(name) for name in NAMED}
    assert len({look.hue for look in looks.values()}) == len({look.mark for look in looks.values()}) == len(looks)
    for name in NAMED:
        assert look_of(ORDERS[name].order_class.__name__) == looks[name]
    assert look_of("SRS") == looks["srs"]


def test_other_orders_have_a_constant_look_that_no_named_order_has() -> None:
    known = {look_of(name) for name in NAMED}
    names = ["shuffle-buffer", "block-shuffle", "jitter", "poisson", "balls-in-bins", "stratified", "weighted"]
    looks = [look_of(name) for name in names]
    assert not known & set(looks)
    assert look_of("jitter") == Look(hue=6, mark=2)  # on any Python and machine
    every = {look_of(f"order {number}") for number in range(500)}
    assert all(0 <= look.hue < len(HUES) and 0 <= look.mark < len(MARKS) for look in every)
    assert not known & every
    assert len({free_look(place) for place in range(8)}) == 8
