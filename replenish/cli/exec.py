"""`replenish exec`: a script that nobody edits, run with another order."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from replenish.cli.errors import errors_as_sentences
from replenish.cli.options import parse_order_options


class ScriptCommand(TyperCommand):
    """A command whose own options end where the script begins, or `-m`: what follows is the script's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the mark that ends options before `-m`, which would else be taken for one."""
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] not in ("-m", "--", "--help"):
            place += 1 if "=" in args[place] else 2
        if args[place : place + 1] == ["-m"]:
            args = [*args[:place], "--", *args[place:]]
        return super().parse_args(ctx, args)


def exec_(
    script: Annotated[
        list[str], typer.Argument(metavar="SCRIPT|-m MODULE [ARGUMENT]...", help="what to run, and its own arguments")
    ],
    order: Annotated[
        str, typer.Option(help="its name, such as srs or reshuffling; a wrong one is answered with all")
    ] = "srs",
    seed: Annotated[int, typer.Option(help="chooses the order's draws; the script's own seed is its own matter")] = 0,
    pool_size: Annotated[int | None, typer.Option(help="slots of the pool of SRS; by default the samples")] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="an option of the order, such as sequence=identity")
    ] = None,
) -> None:
    """Run a script that nobody edits with another order of the data.

    The script runs as by `python`, and every DataLoader in it that shuffles draws with the order instead: with its own
    batch sizes and lengths, on its own processes, also in Lightning, Accelerate and Transformers. In the end a line on
    standard error says of each loader what became of it. Exit code 2 if there was none that shuffles.

    With torchrun: torchrun [...] -m replenish exec --order srs train.py
    """
    import tempfile

    from replenish import checks
    from replenish.exec import run_script
    from replenish.exec.environment import Assignment
    from replenish.orders.fitted import check_fittable

    with errors_as_sentences():
        given = parse_order_options(option or [])
        if pool_size is not None:
            given["pool_size"] = checks.integer("--pool-size", pool_size, minimum=1)
        check_fittable(order, given)
        checks.seed(seed)
        _check_script(script)
        told = Assignment(order, seed, tempfile.mkdtemp(prefix="replenish-exec-"), given)
        words = [sys.executable, *_interpreter_options(), run_script.__file__, *script]
        if os.name == "posix":  # in this very process, so that signals and exit codes are the script's
            sys.stdout.flush()
            os.execve(sys.executable, words, told.environment())
    import subprocess

    raise typer.Exit(subprocess.run(words, env=told.environment(), check=False).returncode)


def _check_script(script: list[str]) -> None:
    if script[0] == "-m":
        if len(script) == 1:
            raise ValueError("-m should be followed by the name of a module")
        return
    if script[0].startswith("-"):
        raise ValueError(f"what is run should be a script or -m and a module, but got {script[0]}")
    if not Path(script[0]).is_file():
        raise ValueError(f"{script[0]} is not a file; give the path of a Python script, or -m and a module")


def _interpreter_options() -> list[str]:
    """Return the options of this interpreter that the script's is to have: -u and -W, say, but not -m."""
    found: list[str] = []
    words = iter(sys.orig_argv[1:])
    for word in words:
        if not word.startswith("-") or word in ("-m", "-c", "-", "--"):
            break
        found.append(word)
        if word in ("-W", "-X"):
            found.append(next(words))
    return found
