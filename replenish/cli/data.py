"""`replenish data`: download and verify CIFAR-10 and CIFAR-100."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replenish.cli import options
from replenish.cli.console import errors_as_sentences, output, print_json, working

if TYPE_CHECKING:
    from replenish.lab.data.cifar import CifarFiles
    from replenish.lab.data.download import Progress

app = typer.Typer(no_args_is_help=True, help="Download and verify CIFAR-10 and CIFAR-100.")

Root = Annotated[
    Path | None,
    typer.Option(help="the folder of the data; by default the one that REPLENISH_DATA names, or else the cache"),
]


@app.command("get")
def get_command(
    name: Annotated[str, typer.Argument(help="cifar10 or cifar100")],
    root: Root = None,
    url: Annotated[
        str | None, typer.Option(help="another https address of the same archive, whose md5 is checked")
    ] = None,
) -> None:
    """Download a CIFAR and verify it."""
    from replenish.lab.data.download import get

    with errors_as_sentences(), _progress_bar(name) as progress:
        found = get(_files(name), root, url=url, progress=progress)
    typer.echo(f"{name} is in {found}, verified.")


@app.command("verify")
def verify_command(
    names: Annotated[list[str] | None, typer.Argument(help="cifar10, cifar100; by default both")] = None,
    root: Root = None,
    as_json: options.Json = False,
) -> None:
    """List the datasets on this machine, and verify that they are the official ones.

    The exit code is 1 if a dataset is damaged, or if one that you name is absent.
    """
    from replenish.lab.data.cifar import data_root, find, read_verified
    from replenish.lab.data.dataset import DataError

    found = [("digits", "whole", "inside scikit-learn")]
    fault = False
    with errors_as_sentences():
        if root is not None and not root.expanduser().is_dir():
            raise NotADirectoryError(f"--root should be a folder that exists, but got {root}")
        for name in names or ("cifar10", "cifar100"):
            files = _files(name)
            path = find(files, root)
            if path is None:
                fault |= bool(names)
                found.append((name, "absent", f"not in {data_root(root)}"))
                continue
            try:
                with working(f"reading {path}"):
                    read_verified(files, path)
                found.append((name, "whole", str(path)))
            except DataError as error:
                fault = True
                found.append((name, "damaged", str(error)))
    heads = ("data", "state", "where")
    if as_json:
        print_json([dict(zip(heads, row, strict=True)) for row in found])
    else:
        from rich.table import Table

        table = Table(*heads)
        for row in found:
            table.add_row(*row)
        output(240).print(table)
    if fault:
        raise typer.Exit(1)


def _files(name: str) -> CifarFiles:
    from replenish import checks
    from replenish.lab.data.cifar import CIFARS

    return CIFARS[checks.one_of("name", name, CIFARS)]


@contextmanager
def _progress_bar(name: str) -> Iterator[Progress]:
    """Show a bar with the speed and the time left, if standard error is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    columns = (
        "{task.description}",
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
