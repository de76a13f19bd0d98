"""`replenish exec`: a script that nobody edits, run with another order."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from replenish.cli.commands import given_flags
from replenish.cli.errors import errors_as_sentences
from replenish.cli.options import option_value, parse_order_options
from replenish.cli.script import Script, check_script, interpreter_options


def exec_(
    context: typer.Context,
    script: Script,
    order: Annotated[
        str, typer.Option(help="its name, such as srs or reshuffling; a wrong one is answered with all")
    ] = "srs",
    seed: Annotated[int, typer.Option(help="chooses the order's draws; the script's own seed is its own matter")] = 0,
    pool_size: Annotated[int | None, typer.Option(help="slots of the pool of SRS; by default the samples")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="an option of the order: sequence=identity, labels=labels.npy"),
    ] = None,
) -> None:
    """Run a script that nobody edits with another order of the data.

    The script runs as by `python`, and every DataLoader in it that shuffles draws with the order instead: with its own
    batch sizes and lengths, on its own processes, also in Lightning, Accelerate and Transformers. In the end a line on
    standard error says of each loader what became of it. Exit code 2 if there was none that shuffles.

    With torchrun: torchrun [...] -m replenish exec --order srs train.py
    """
    with errors_as_sentences():
        check_script(script)  # before numpy is loaded
    import tempfile

    from replenish import checks
    from replenish.exec import run_script
    from replenish.exec.environment import Assignment
    from replenish.orders.fitted import check_fittable

    with errors_as_sentences(flags=given_flags(context)):
        given = parse_order_options(option or [])
        for name, value in given.items():
            if option_value(name, value) is not value:  # an array's file, which can be read
                given[name] = os.path.abspath(str(value))  # also where the script has gone elsewhere
        if pool_size is not None:
            given["pool_size"] = checks.integer("--pool-size", pool_size, minimum=1)
        check_fittable(order, given)
        checks.seed(seed)
        told = Assignment(order, seed, tempfile.mkdtemp(prefix="replenish-exec-"), given)
        words = [sys.executable, *interpreter_options(), run_script.__file__, *script]
        if os.name == "posix":  # in this very process, so that signals and exit codes are the script's
            sys.stdout.flush()
            os.execve(sys.executable, words, told.environment())
    import subprocess

    raise typer.Exit(subprocess.run(words, env=told.environment(), check=False).returncode)
