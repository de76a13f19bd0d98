"""Kinds of commands: groups of commands, commands with many options, with numbers as arguments, or with a script.

Help is plain text. Typer's panels need rich, and importing rich would take most of the time.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from replenish.cli.console import errors_as_sentences

#: The options under "What is run" and "Where it is run". All others are under "How it is trained".
WHAT = (
    "data orders seeds scale command metric metric_json metric_name higher_is_better check margin until_decided "
    "max_seeds budget"
)
WHERE = "runs jobs accelerator devices num_nodes threads compile_model tensorboard as_json yes"
Script = Annotated[
    list[str],
    typer.Argument(metavar="SCRIPT|-m MODULE [ARGUMENT]...", help="the script or module to run, and its arguments"),
]
#: More characters than the first sentence of any command's help, so that click does not shorten it.
WHOLE_SENTENCE = 400


class CommandList(TyperGroup):
    """A group whose help has the whole first sentence of every command, wrapped at the terminal's width."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the name and the first sentence of each command."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, command.get_short_help_str(WHOLE_SENTENCE)) for name, command in commands if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class GroupedCommand(TyperCommand):
    """A command whose help has the options in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options, each under the title of its group."""
        groups: dict[str, list[tuple[str, str]]] = {
            title: [] for title in ("Arguments", "What is run", "How it is trained", "Where it is run", "Options")
        }
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                groups[_title(parameter)].append(record)
        for title, lines in groups.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


class NumberedCommand(TyperCommand):
    """A command whose first arguments are numbers. Click would read a negative number as an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Reject a negative number among the first arguments."""
        arguments = [parameter for parameter in self.params if parameter.param_type_name == "argument"]
        with errors_as_sentences():
            for argument, word in zip(arguments, args, strict=False):
                if re.fullmatch(r"-\d+", word):
                    raise ValueError(f"{argument.name} should not be negative, but got {word}")
                if not word.isdigit():
                    break
        return super().parse_args(ctx, args)


class ScriptCommand(TyperCommand):
    """A command whose own options end at the script or at `-m`; all later words are for the script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `--` before `-m`, which click would otherwise read as an option."""
        flags = {name for each in self.params if getattr(each, "is_flag", False) for name in each.opts}
        place = 0
        while place < len(args) and args[place].startswith("-") and args[place] not in ("-m", "--", "--help"):
            place += 1 if "=" in args[place] or args[place] in flags else 2
        if args[place : place + 1] == ["-m"]:
            args = [*args[:place], "--", *args[place:]]
        return super().parse_args(ctx, args)


def given_flags(context: Any) -> dict[str, str]:
    """Return the parameters that the user gave on the command line: their Python names, with the flag of each."""
    found = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name)
        if source is not None and source.name == "COMMANDLINE":
            found[parameter.name] = parameter.opts[0]
    return found


def check_script(script: list[str]) -> None:
    """Reject a script that is not a file, and `-m` without a module."""
    if script[0] != "-m":
        if not Path(script[0]).is_file():
            raise ValueError(f"{script[0]} is not a file; give the path of a Python script, or -m and a module")
    elif len(script) == 1:
        raise ValueError("-m should be followed by the name of a module")


def command_of(script: list[str]) -> list[str]:
    """Return the command with which this interpreter runs a script under the hooks of `replenish.exec`.

    It has this interpreter's own options, such as -u and -W, but not -m.
    """
    from replenish.exec import run_script

    found = [sys.executable]
    words = iter(sys.orig_argv[1:])
    for word in words:
        if not word.startswith("-") or word in ("-m", "-c", "-", "--"):
            break
        found.append(word)
        if word in ("-W", "-X"):
            found.append(next(words))
    return [*found, run_script.__file__, *script]


def _title(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "Arguments"
    if parameter.name == "help":
        return "Options"
    if parameter.name in WHAT.split():
        return "What is run"
    return "Where it is run" if parameter.name in WHERE.split() else "How it is trained"
