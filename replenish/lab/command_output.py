"""Where commands print their tables."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def output(width: int = 160) -> Console:
    """Return the console of standard output.

    Args:
        width: Used where there is no terminal whose width is to be fitted: a path or a name broken in two could not be
            searched for.
    """
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=width)
