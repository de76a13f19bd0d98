"""`replenish explain`: SRS step by step, in the terminal or as a page."""

from __future__ import annotations

import tempfile
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from replenish.cli.commands import given_flags
from replenish.cli.console import errors_as_sentences


def explain(
    context: typer.Context,
    n: Annotated[int, typer.Option("--n", help="number of samples: the paper's N")] = 5,
    batch_size: Annotated[int, typer.Option(help="samples in a mini-batch: the paper's B")] = 2,
    steps: Annotated[int, typer.Option(help="steps to show")] = 20,
    seed: Annotated[int, typer.Option(help="the seed of all orders")] = 0,
    pool_size: Annotated[int | None, typer.Option(help="slots in the pool; by default N, as in the paper")] = None,
    sequence: Annotated[
        str, typer.Option(help="what refills the pool: identity (as in the paper) or shuffled")
    ] = "identity",
    html: Annotated[Path | None, typer.Option(help="write a page that plays the steps to this file")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="open that page in a browser")] = False,
    noise: Annotated[
        bool,
        typer.Option("--noise", help="show the orders' noise instead, on a page with sliders (--html or --open)"),
    ] = False,
) -> None:
    """Show step by step how SRS draws from the pool and refills it from the queue.

    This is the paper's figure 1 for any N and B. With --noise, a page shows what an order does to SGD.
    """
    from replenish.lab.atomic_files import check_place
    from replenish.lab.explain import pages, terminal
    from replenish.measure.trace import compute_trace

    given = given_flags(context)
    with errors_as_sentences(flags={**given, "num_samples": "--n"}):
        if html is not None and open_page:
            raise ValueError("--html and --open should not be given together; take --html to keep the page, or --open")
        if html is not None:
            check_place("--html", html, ".html")
        if noise:
            for name, flag in given.items():
                if name not in ("noise", "html", "open_page"):
                    raise ValueError(f"{flag} should not be given for --noise, which takes --html and --open only")
            if html is None and not open_page:
                raise ValueError("--noise should be given with --html or --open: it is a page, with sliders")
            _put(pages.noise_page(), html)
            return
        if html is not None or open_page:
            pages.check_sizes(n, batch_size, steps, pool_size)
        trace = compute_trace(n, batch_size, steps, seed=seed, pool_size=pool_size, sequence=sequence)
        if html is not None or open_page:
            _put(pages.explorer_page(trace), html)
        else:
            from rich.console import Console

            terminal.show(trace, Console(highlight=False))


def _put(page: str, html: Path | None) -> None:
    """Write a page to a file, or open it in a browser."""
    from replenish.lab.atomic_files import write_atomically

    if html is not None:
        write_atomically(html, page.encode())
        typer.echo(f"written to {html}")
        return
    # The system clears this folder away later: the browser reads the page after this command has ended.
    kept = Path(tempfile.mkdtemp(prefix="replenish-")) / "explain.html"
    write_atomically(kept, page.encode())
    if not webbrowser.open(kept.as_uri()):
        raise OSError(f"no browser could be opened; the page is {kept}, to be opened by hand")
    typer.echo(f"opened {kept}")
