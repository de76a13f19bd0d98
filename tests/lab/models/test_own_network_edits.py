"""An edit in any file of your own network changes its name, so earlier results are not reused."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from replenish.lab.models.network_digest import network_name
from replenish.lab.models.own_network import own_network

NETWORKS = """
import functools
from dataclasses import dataclass

import torch
from torch import nn

import helper
from package import settings
from package.layers import Scale

STYLE = {"slope": 0.1}


@dataclass(slots=True)
class Options:
    power: float = 2.0


@functools.cache
def slope():
    return 0.1


def twice(function):
    @functools.wraps(function)
    def wrapped(*arguments):
        return function(*arguments) * 2

    return wrapped


class Net(nn.Module):
    options = Options()

    def __init__(self):
        super().__init__()
        self.linear, self.scale = nn.Linear(4, 2), Scale()

    @property
    def bias(self):
        return 1.0

    @staticmethod
    def shift(images):
        return images + 1

    @twice
    def forward(self, images):
        from late import finish

        images = torch.nn.functional.leaky_relu(self.scale(self.linear(images)), slope() + STYLE["slope"])
        return finish(helper.bend(self.shift(images) + self.bias + settings.SHIFT)) ** self.options.power
"""
FILES = {
    "networks.py": NETWORKS,
    "helper.py": "from second import third\n\n\ndef bend(images):\n    return third(images)\n",
    "second.py": "import deep.inner\n\n\nthird = lambda images: images * deep.inner.FACTOR\n",
    "deep/__init__.py": "",
    "deep/inner.py": "FACTOR = sum([1, 2])\n",
    "package/__init__.py": "",
    "package/settings.py": "SHIFT = 1.0\n",
    "package/layers.py": (
        "from torch import nn\nfrom .base import Base\n\n\nclass Scale(Base):\n    factor = 2\n"
        "    def forward(self, images):\n        return images * self.factor\n"
    ),
    "package/base.py": (
        "from torch import nn\n\n\nclass Base(nn.Module):\n"
        "    def extra_repr(self):\n        return f'at {hex(id(self))}'\n"
    ),
    "late/__init__.py": "from .end import finish as finish\n",
    "late/end.py": "def finish(images):\n    return images - 1\n",
}


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], str]:
    """Return a function that writes files, imports them again, and returns the name of their network."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def name(files: dict[str, str]) -> str:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text)
        for module, loaded in list(sys.modules.items()):
            if (getattr(loaded, "__file__", None) or "").startswith(str(tmp_path.parent)):
                del sys.modules[module]
        importlib.invalidate_caches()
        return network_name(importlib.import_module("networks").Net)

    return name


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("networks.py", "power: float = 2.0", "power: float = 3.0"),
        ("networks.py", "return 0.1", "return 0.2"),
        ("networks.py", '"slope": 0.1', '"slope": 0.2'),
        ("networks.py", "(*arguments) * 2", "(*arguments) * 3"),
        ("networks.py", "return 1.0", "return 2.0"),
        ("networks.py", "images + 1", "images + 2"),
        ("networks.py", "options = Options()", "options = Options(3.0)"),
        ("networks.py", "    @twice\n", ""),
        ("helper.py", "third(images)", "-third(images)"),
        ("helper.py", "from second import third", "from late import finish as third"),
        ("second.py", "images * deep", "images / deep"),
        ("deep/inner.py", "[1, 2]", "[1, 3]"),
        ("deep/__init__.py", "", "import deep.inner\ndeep.inner.FACTOR = 4\n"),
        ("package/__init__.py", "", "from package import settings\nsettings.SHIFT += 1\n"),
        ("package/settings.py", "1.0", "1.5"),
        ("package/layers.py", "factor = 2", "factor = 3"),
        ("package/base.py", "return f'at", "self.factor = 9\n        return f'at"),
        ("package/base.py", "class Base(nn.Module):", "class Base(nn.Identity):"),
        ("late/__init__.py", "as finish", "as finish\n\nfinish = abs"),
        ("late/end.py", "images - 1", "images - 2"),
    ],
)
def test_an_edit_anywhere_gives_another_name(
    named: Callable[[dict[str, str]], str], file: str, old: str, new: str
) -> None:
    before = named(FILES)
    assert old in FILES[file]
    assert named({file: FILES[file].replace(old, new, 1)}) != before


def test_the_same_files_give_the_same_name(named: Callable[[dict[str, str]], str]) -> None:
    before = named(FILES)  # `extra_repr` prints an address
    assert named(FILES) == before
    script = "\n\nif __name__ == '__main__':\n    print(3)\n"
    assert named({"networks.py": f"# a comment\n{NETWORKS}{script}", "unrelated.py": "import networks\n"}) == before


def test_a_module_that_changes_at_run_time_gives_another_name(named: Callable[[dict[str, str]], str]) -> None:
    before = named(FILES)
    net = sys.modules["networks"].Net
    net.forward = torch.nn.Identity.forward
    patched = network_name(net)
    sys.modules["package.layers"].Scale.factor = 5  # type: ignore[attr-defined]
    changed = network_name(net)
    sys.modules["package.settings"].SHIFT = 3.0  # type: ignore[attr-defined]
    assert len({before, patched, changed, network_name(net)}) == 4


def test_a_module_imported_during_training_does_not_change_the_name(named: Callable[[dict[str, str]], str]) -> None:
    before = named(FILES)
    make = sys.modules["networks"].Net
    assert "late" not in sys.modules
    make()(torch.zeros(2, 4))
    assert "late" in sys.modules
    assert network_name(make) == before


def test_unreadable_code_is_refused_without_a_label(named: Callable[[dict[str, str]], str]) -> None:
    dynamic = NETWORKS + "\nimport importlib\nimportlib.import_module('unrelated')\n"
    with pytest.raises(ValueError, match="networks uses import_module. Give the function or class"):
        named({**FILES, "unrelated.py": "", "networks.py": dynamic})
    loading = f"{NETWORKS}\n\ndef load(spec, module):\n    spec.loader.exec_module(module)\n"
    with pytest.raises(ValueError, match="networks uses exec_module"):
        named({"networks.py": loading})
    locked = NETWORKS.replace("nn.Linear(4, 2)", "__import__('threading').Lock()")
    with pytest.raises(ValueError, match=r"cannot pickle '_thread.lock' object"):
        named({**FILES, "networks.py": locked})
    for text in (dynamic, locked):
        labels = [f"{text}Net.replenish_label = 'v{number}'\n" for number in (1, 2, 2)]
        first, second, again = (named({"networks.py": label}) for label in labels)
        assert first != second == again


def test_a_label_counts_where_a_network_is_found_by_place(named: Callable[[dict[str, str]], str]) -> None:
    names = []
    for label in ("v1", "v2"):
        named({**FILES, "networks.py": f"{NETWORKS}\n\ndef small():\n    return Net()\n"})
        sys.modules["networks"].small.replenish_label = label  # type: ignore[attr-defined]
        names.append(network_name(own_network("networks:small", 1, 2, 8)))
    assert names[0] != names[1]


def test_a_network_without_a_source_file_is_refused() -> None:
    script = (
        "from torch import nn; from replenish.lab.models.network_digest import network_name\n"
        "class Typed(nn.Module): pass\n"
        "network_name(Typed)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "the network Typed has changed cannot be determined: __main__ has no source file" in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda networks: setattr(networks.args, "slope", 0.7), id="an argparse namespace"),
        pytest.param(lambda networks: networks.configure(0.9), id="a function that sets a global"),
        pytest.param(lambda networks: setattr(networks.Net.options, "power", 3.0), id="an object in a class"),
        pytest.param(lambda networks: networks.TABLE.fill_(2.0), id="a tensor"),
        pytest.param(lambda networks: networks.LEVELS.__setitem__(0, 2.0), id="an array"),
        pytest.param(lambda networks: networks.bend.keywords.update(slope=0.7), id="a partial"),
    ],
)
def test_a_setting_made_at_run_time_gives_another_name(
    named: Callable[[dict[str, str]], str], change: Callable[[object], None]
) -> None:
    settings = (
        "\nimport argparse\nimport numpy\n\nparser = argparse.ArgumentParser()\nargs = argparse.Namespace(slope=0.1)\n"
        "TABLE, LEVELS = torch.zeros(2), numpy.zeros(2)\n\n\n"
        "bend = functools.partial(dict, slope=0.1)\nclocks = []\n\n\n"
        "def configure(value):\n    global SLOPE\n    SLOPE = value, args, TABLE, LEVELS, bend\n\n\nconfigure(0.1)\n"
    )
    before = named({**FILES, "networks.py": NETWORKS + settings})
    networks = sys.modules["networks"]
    networks.clocks.append(time.time())  # type: ignore[attr-defined]  # no function uses it
    assert network_name(networks.Net) == before
    change(networks)
    assert network_name(networks.Net) != before


def test_a_file_edited_after_its_import_has_three_names(named: Callable[[dict[str, str]], str], tmp_path: Path) -> None:
    before = named(FILES)
    edited = NETWORKS.replace("images + 1", "images + 2")
    (tmp_path / "networks.py").write_text(edited)
    stale = network_name(sys.modules["networks"].Net)
    assert len({before, stale, named({"networks.py": edited})}) == 3


def test_a_function_bound_to_a_network_is_read(named: Callable[[dict[str, str]], str]) -> None:
    make = "\n\ndef make():\n    net = nn.Linear(4, 2)\n    net.forward = types.MethodType(patches.forward, net)\n"
    make += "    return net\n"
    patch = "def forward(self, images):\n    return 2 * images\n"
    names = []
    for text in (patch, patch.replace("2", "3")):
        named({**FILES, "networks.py": f"import types\nimport patches\n{NETWORKS}{make}", "patches.py": text})
        names.append(network_name(sys.modules["networks"].make))
    assert names[0] != names[1]


def test_a_network_by_place_has_the_digest_of_its_name(named: Callable[[dict[str, str]], str]) -> None:
    named({**FILES, "networks.py": f"{NETWORKS}\n\ndef small():\n    return Net()\n"})
    place = f"networks:small@{network_name(own_network('networks:small', 1, 2, 8)).partition('@')[2]}"
    style = sys.modules["networks"].STYLE  # type: ignore[attr-defined]
    style["slope"] = 0.3
    with pytest.raises(ValueError, match="networks:small has changed since its runs began, when its digest was"):
        own_network(place, 1, 2, 8)
    style["slope"] = 0.1
    own_network(place, 1, 2, 8)
    style["seen"] = 1  # for example, set by the first run
    own_network(place, 1, 2, 8)
