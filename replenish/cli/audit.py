"""`replenish audit`: what do the loaders of a script really do?"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.commands import Script, check_script, command_of, given_flags
from replenish.cli.console import command_line, errors_as_sentences, first_process

if TYPE_CHECKING:
    from replenish.exec.resume_test import ResumeTest

#: Exit codes other than 0: there is a fault; the arguments are wrong, or there was nothing to audit.
FAULT_FOUND, NOTHING_AUDITED = 1, 2
#: Parameters that have an effect only with --resume, and those that have none with it.
RESUME_ONLY = ("checkpoint", "stop", "link")
NOT_WITH_RESUME = ("epochs", "html", "record")


def audit(
    context: typer.Context,
    script: Script,
    epochs: Annotated[
        int, typer.Option(help="end the script after this many epochs of a training loader; 0 lets it run to its end")
    ] = 3,
    steps: Annotated[int, typer.Option(help="end the script after this many training batches; 0 sets no limit")] = 0,
    html: Annotated[Path | None, typer.Option(help="also write a page to this file")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="also write JSON, for a program, to this file")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="test a resume instead: the command that resumes, with {checkpoint} for the checkpoint's path",
        ),
    ] = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="with --resume: where the script writes checkpoints, such as out/*.bin"),
    ] = None,
    stop: Annotated[
        int, typer.Option(help="with --resume: batches before the stop; 0 stops in the middle of the middle epoch")
    ] = 0,
    link: Annotated[
        list[Path] | None,
        typer.Option(help="with --resume: a file or folder that the script reads, linked into its scratch folder"),
    ] = None,
    record: options.Record = None,
) -> None:
    """Report what the training loaders of a script really do: ok, warning or fault for each question.

    The script runs and trains as it does with `python`. The audit records what the loaders draw in the script's own
    epochs, and judges it at the end. A loader that is iterated with gradients off, or without an optimizer step, counts
    as an evaluation loader and is not judged.

    With --resume, the script runs once to its end, is stopped once by SIGTERM and once by SIGKILL, and is resumed each
    time. The batches after the resume are compared with those of the uninterrupted run. Every run works in an empty
    scratch folder, so the script should write to relative paths, and read from absolute paths or from what --link
    names.

    With torchrun: torchrun [...] -m replenish audit train.py; the ranks of one machine are judged together.

    The exit code is 0 without a fault, 1 with a fault, and 2 for wrong arguments or if the script trained with no
    loader. If the script fails before it trains, the audit ends with the script's own code.
    """
    with errors_as_sentences():
        check_script(script)  # before numpy is loaded
    from replenish import checks
    from replenish.exec.flight_record import finish_record, start_record
    from replenish.exec.resume_test import CHECKPOINTS, ResumeTest
    from replenish.exec.script_audit import recorded_run
    from replenish.lab.atomic_files import check_place
    from replenish.lab.stopping import handling, raise_stopped

    # A signal to this process does not reach the script, which has a session of its own: so end the script here.
    with errors_as_sentences(), handling(raise_stopped, signal.SIGTERM):
        flags = given_flags(context)
        checks.integer("--epochs", epochs, minimum=0)
        checks.integer("--steps", steps, minimum=0)
        if html is not None:
            check_place("--html", html, ".html", ".htm")
        if json_file is not None:
            check_place("--json", json_file, ".json")
        if resume is None and (extra := [flag for name, flag in flags.items() if name in RESUME_ONLY]):
            raise ValueError(f"{extra[0]} should be given with --resume only")
        if resume is not None:
            if extra := [flag for name, flag in flags.items() if name in NOT_WITH_RESUME]:
                raise ValueError(f"{extra[0]} should be left out with --resume, which makes no use of it")
            limit = steps or None
            test = ResumeTest(script, resume, limit, stop or None, tuple(checkpoint or CHECKPOINTS), tuple(link or ()))
            raise typer.Exit(_report_resume(test, json_file))
        kept = None if record is None else start_record(record)
        sys.stdout.flush()
        with recorded_run(command_of(script), kept, epochs=epochs or None, steps=steps or None) as (code, records):
            if not first_process():
                raise typer.Exit(code)
            code = _report(records, code, html, json_file)
            if record is not None:
                typer.echo(f"{finish_record(record):,} training batches recorded in {record}")
            raise typer.Exit(code)


def _report_resume(test: ResumeTest, json_file: Path | None) -> int:
    """Run the test of a resume, print and write the findings, and return the exit code."""
    from replenish.measure.findings import FAULT

    found = test.run(lambda line: typer.echo(f"replenish: {line}", err=True))
    typer.echo(repr(found))
    if json_file is not None:
        _write_json(json_file, found.to_dict())
    return FAULT_FOUND if found.level == FAULT else 0


def _report(records: Path, code: int, html: Path | None, json_file: Path | None) -> int:
    """Print and write the findings, and return the exit code."""
    from replenish.exec.script_audit import judge_run
    from replenish.lab.atomic_files import write_atomically
    from replenish.measure.findings import FAULT

    audits, others = judge_run(records)
    for name, one in audits:
        typer.echo(f"{name}\n{one!r}")
    for line in others:
        typer.echo(line)
    if html is not None and audits:
        from replenish.lab.audit_page import page

        write_atomically(html, page(audits, others, command_line()).encode())
        typer.echo(f"written to {html}")
    if json_file is not None and audits:
        loaders = [{"name": name, **one.to_dict()} for name, one in audits]
        _write_json(json_file, {"loaders": loaders, "others": others})
        typer.echo(f"written to {json_file}")
    if any(one.level == FAULT for _, one in audits):
        return FAULT_FOUND
    if audits:
        return 0
    if code == 0:
        made = any(records.iterdir())
        why = "it trained with none of its loaders" if made else "the script made no torch DataLoader"
        typer.echo(f"replenish: nothing was audited: {why}", err=True)
    return code or NOTHING_AUDITED


def _write_json(path: Path, findings: dict[str, Any]) -> None:
    from replenish.lab.atomic_files import write_atomically

    plain = {"command": command_line(), **findings}
    write_atomically(path, (json.dumps(plain, indent=1) + "\n").encode())
