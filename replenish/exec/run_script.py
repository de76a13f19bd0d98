"""Runs a script as `python` would, and prints at the end what happened to its loaders.

    python run_script.py SCRIPT [ARGUMENT ...]
    python run_script.py -m MODULE [ARGUMENT ...]

It is started by its path, in an environment from `replenish.exec.environment`. Until the script ends it imports only
the standard library, since the script may set variables that numpy and torch read when they are loaded.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import runpy
import shutil
import sys
import types

#: The exit code if the order was not used, and for wrong arguments.
NOTHING_REPLACED = 2


def main() -> None:
    """Run the script of the command line. Exit as it exits, or with 2 if no loader got the order."""
    sys.argv.pop(0)
    try:
        if sys.argv[0] == "-m":
            _run_module(sys.argv.pop(1))
        else:
            _run_file(sys.argv[0])
    except SystemExit as ended:
        if ended.code not in (None, 0):
            _report(failed=True)
            raise
    except BaseException as error:
        _complain(error)
        _report(failed=True)
        # Python ends as after any exception (code 1, or killed by Ctrl-C) but prints no second traceback.
        sys.excepthook = lambda *ignored: None
        raise
    if not _report(failed=False):
        sys.stdout.flush()
        raise SystemExit(NOTHING_REPLACED)


def _run_file(path: str) -> None:
    """Execute a file as the main module, with its folder as the first to import from."""
    _import_first_from(os.path.dirname(os.path.realpath(path)))
    path = os.path.abspath(path)
    module = types.ModuleType("__main__")
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    vars(module).update(__file__=path, __loader__=loader, __builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = module
    exec(loader.source_to_code(loader.get_data(path), path), vars(module))


def _run_module(name: str) -> None:
    """Execute a module, or the `__main__` of a package, as the main module."""
    _import_first_from(os.getcwd())
    try:
        found = importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # its package is missing, or it is not a module's name
        found = False
    if not found:
        print(
            f"replenish: there is no module {name}; give the name of one that Python finds from here", file=sys.stderr
        )
        raise SystemExit(NOTHING_REPLACED)
    sys.modules["__main__"] = types.ModuleType("__main__")
    runpy._run_module_as_main(name)  # type: ignore[attr-defined]  # what `python -m` itself calls


def _import_first_from(folder: str) -> None:
    if getattr(sys.flags, "safe_path", False):
        return  # with -P, Python has put no folder there
    sys.path[0] = folder


def _complain(error: BaseException) -> None:
    """Print an exception with a traceback that starts in the script."""
    traceback = error.__traceback__
    # Skip the frames of this file and of Python's own ways to run a script.
    ours = (__file__, runpy.__file__, "<frozen ")
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith(ours):
        traceback = traceback.tb_next
    error.__traceback__ = traceback
    sys.excepthook(type(error), error, traceback)


def _report(failed: bool) -> bool:
    """Print a line for each loader, in the first process only, and return whether any got the order.

    An audit prints nothing here, since the process that started it reads the results.
    """
    from replenish.exec.environment import RECORD_VARIABLE, VARIABLE, OrderRequest
    from replenish.exec.records import read_records

    if RECORD_VARIABLE in os.environ and VARIABLE not in os.environ:
        return True
    request = OrderRequest.from_environment()
    if (hook := sys.modules.get("replenish.exec.hook")) is not None:
        hook.write_records()
    found = read_records(request.records)
    shutil.rmtree(request.records, ignore_errors=True)
    if os.environ.get("RANK", "0") in ("", "0"):
        if RECORD_VARIABLE in os.environ:
            from replenish.exec.flight_record import finish_record_of_exec

            _print(finish_record_of_exec())
        for line in found.summaries():
            _print(line)
        if not found.replaced and not failed:
            why = "no torch DataLoader that shuffles was used for training" if found.loaders else found.why_nothing()
            _print(f"the order {request.order} was not used: {why}")
    return found.replaced


def _print(line: str) -> None:
    sys.stdout.flush()
    print(f"replenish: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
