"""`replenish exec`: run a script, unmodified, with a different data order."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from replenish.cli.commands import Script, check_script, command_of, given_flags
from replenish.cli.console import errors_as_sentences
from replenish.cli.options import OrderOptions, Record, complete_orders, option_value, parse_order_options


def exec_(
    context: typer.Context,
    script: Script,
    order: Annotated[
        str, typer.Option(help="the order's name; see `replenish list orders`", autocompletion=complete_orders)
    ] = "srs",
    seed: Annotated[
        int, typer.Option(help="the seed of the first training loader's order; the script's own seed does not change")
    ] = 0,
    everything: Annotated[
        bool, typer.Option("--all", help="also reorder training loaders that do not shuffle")
    ] = False,
    start_epoch: Annotated[
        int, typer.Option(help="the order's epoch to begin with, for a script that resumes after that many epochs")
    ] = 0,
    pool_size: Annotated[int | None, typer.Option(help="slots in SRS's pool; by default the number of samples")] = None,
    option: OrderOptions = None,
    record: Record = None,
) -> None:
    """Run your script, unmodified, with a different data order.

    The script runs as by `python`, and every DataLoader in it that shuffles draws from the order instead: with its own
    batch sizes and lengths, on its own processes, also in Lightning, Accelerate and Transformers. Every `iter()` of a
    loader draws a new epoch. At the end, standard error has a line for each loader. Exit code 2
    if no loader that shuffles was trained on.

    With torchrun: torchrun [...] -m replenish exec --order srs train.py
    """
    with errors_as_sentences():
        check_script(script)  # before numpy is loaded
    import tempfile

    from replenish import checks
    from replenish.exec.environment import AuditTask, OrderRequest, run_environment
    from replenish.exec.flight_record import start_record
    from replenish.orders.building import check_fittable, is_file

    with errors_as_sentences(flags=given_flags(context)):
        options = parse_order_options(option or [])
        for name, value in options.items():
            if option_value(name, value) is not value:  # the file of an array: it was read, so that an error comes now
                options[name] = os.path.abspath(str(value))  # the script may change the working folder
        if pool_size is not None:
            if "pool_size" in options:
                raise ValueError(f"--pool-size should be left out, since --option has pool_size={options['pool_size']}")
            options["pool_size"] = checks.integer("--pool-size", pool_size, minimum=1)
        if is_file(order):
            order = os.path.abspath(order)
        check_fittable(order, options)
        checks.seed(seed)
        checks.integer("start_epoch", start_epoch, minimum=0)
        records = tempfile.mkdtemp(prefix="replenish-exec-")
        request = OrderRequest(order, seed, records, options, everything, start_epoch)
        task = None if record is None else AuditTask(str(start_record(record)), facts=False)
        environment = run_environment(request, task)
        words = command_of(script)
        if os.name == "posix":  # in this process, so that signals reach the script and its exit code is ours
            sys.stdout.flush()
            os.execve(sys.executable, words, environment)
    import subprocess

    raise typer.Exit(subprocess.run(words, env=environment, check=False).returncode)
