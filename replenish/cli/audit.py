"""`replenish audit`: what do the loaders of a script really do?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from replenish.cli.console import command_line, first_process
from replenish.cli.errors import errors_as_sentences
from replenish.cli.script import Script, check_script, interpreter_options

#: Exit codes beside 0: something is wrong; wrong arguments, or there was nothing to audit.
SOMETHING_WRONG, NOTHING_AUDITED = 1, 2


def audit(
    script: Script,
    epochs: Annotated[int, typer.Option(help="epochs of a loader to look at")] = 3,
    steps: Annotated[
        int, typer.Option(help="batches of training after which the script is ended; 0 lets it go on to its end")
    ] = 100,
    html: Annotated[Path | None, typer.Option(help="also write a page to this file")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="also write everything, for a program, to this file")
    ] = None,
) -> None:
    """Say what the training loaders of a script really do, with a verdict for each question.

    The script runs as by `python`. When it first trains with a loader, the loader is audited as the script has made it:
    of a map-style dataset the indices are read and no data, a stream is read and its items are known by their hash. A
    loader that is iterated with gradients off is one of an evaluation, and left alone. After some batches of training
    the script is ended.

    Exit code 0 if all is fine or worth a look, 1 if something is wrong, 2 for wrong arguments or if no loader was
    trained with. A script that fails before that ends the audit with its own code.
    """
    with errors_as_sentences():
        check_script(script)  # before numpy is loaded
    import tempfile

    from replenish import checks
    from replenish.exec import run_script
    from replenish.exec.audit_task import AuditTask, read_found
    from replenish.lab.atomic_files import check_place

    with errors_as_sentences():
        checks.integer("--epochs", epochs, minimum=2)
        checks.integer("--steps", steps, minimum=0)
        if html is not None:
            check_place("--html", html, ".html", ".htm")
        if json_file is not None:
            check_place("--json", json_file, ".json")
        words = [sys.executable, *interpreter_options(), run_script.__file__, *script]
        sys.stdout.flush()
        with tempfile.TemporaryDirectory(prefix="replenish-audit-", ignore_cleanup_errors=True) as records:
            task = AuditTask(epochs, steps or None, records)
            code = subprocess.run(words, env=task.environment(), check=False).returncode
            found = read_found(records)
        raise typer.Exit(_report(found, code, html, json_file) if first_process() else code)


def _report(found: list[dict[str, Any]], code: int, html: Path | None, json_file: Path | None) -> int:
    """Print and write what was found, and return the exit code."""
    from replenish.auditing import Audit
    from replenish.auditing.findings import FAULT
    from replenish.lab.atomic_files import write_atomically

    audits = [(each["place"], Audit.from_dict(each["audit"])) for each in found if "audit" in each]
    others = [f"{each['place']}: {_why_not(each)}" for each in found if "audit" not in each]
    for place, one in audits:
        typer.echo(f"{place}: {one!r}")
    for line in others:
        typer.echo(line)
    if html is not None and audits:
        from replenish.lab.audit_page import page

        write_atomically(html, page(audits, others, command_line()).encode())
        typer.echo(f"written to {html}")
    if json_file is not None and audits:
        write_atomically(
            json_file, (json.dumps({"command": command_line(), "loaders": found}, indent=1) + "\n").encode()
        )
        typer.echo(f"written to {json_file}")
    if any(one.level == FAULT for _, one in audits):
        return SOMETHING_WRONG
    if audits:
        return 0
    if code == 0:
        why = "it made no DataLoader" if not found else "it trained with none of its loaders"
        typer.echo(f"replenish: nothing was audited: {why}; a --steps of 0 lets the script go on to its end", err=True)
    return code or NOTHING_AUDITED


def _why_not(loader: dict[str, Any]) -> str:
    if "refused" in loader:
        return f"not audited: {loader['refused']}"
    reasons = {
        "made": "it was not iterated",
        "evaluated": "it was iterated with gradients off alone, as in an evaluation",
    }
    return f"not audited, {reasons[loader['state']]}"
