"""An order has one look everywhere, and looks can be told apart, also by the colour-blind."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from replenish.orders import ORDERS
from replenish.palette import HUES, MARKS, Look, free_look, look_of

#: Those that most charts have, with looks of their own.
NAMED = ("srs", "reshuffling", "replacement", "independent", "shuffle-once", "flip-flop")
# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SIGHTS = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566]]
LMS += [[0.0883024619, 0.2817188376, 0.6299787005]]
OKLAB = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099]]
OKLAB += [[0.0259040371, 0.7827717662, -0.8086757660]]


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    return float(linear(colour) @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("sight", list(SIGHTS))
@pytest.mark.parametrize("ground", [0, 1], ids=["light", "dark"])
def test_six_hues_can_be_told_apart(ground: int, sight: str) -> None:
    """Distances in Oklab, where 0.02 is just seen; the three orders of most charts lie farther apart."""
    seen = [np.clip(np.array(SIGHTS[sight]) @ linear(hue[ground]), 0, 1) for hue in HUES[:6]]
    places = [np.array(OKLAB) @ np.cbrt(np.array(LMS) @ colour) for colour in seen]
    distances = {
        (first, second): float(np.linalg.norm(places[first] - places[second]))
        for first, second in itertools.combinations(range(6), 2)
    }
    assert min(distances.values()) > 0.065
    assert min(distance for (_, second), distance in distances.items() if second < 3) > 0.085


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
