"""Check the built files of a release: `make release-check`.

Only pip's installs use the network. Environments are new and empty, outside the repository, with the lowest versions
that the package declares (`constraints-lowest.txt`).
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PIP = ("-m", "pip", "--disable-pip-version-check")

ONLY_NUMPY = """
import sys
import replenish
order = replenish.SequencedReplacement(100, 10, seed=1)
assert len(order.batch(10**6)) == 10
heavy = {"torch", "scipy", "sklearn", "matplotlib", "rich", "typer", "pandas"} & set(sys.modules)
assert not heavy, heavy
print(replenish.__version__)
"""

A_RUN = """
import sys
from replenish.lab import RunConfig, load_network, train
config = RunConfig(dataset="digits", model="wrn-10-1", epochs=1, pad=1, flip=False, decay_epochs=())
print(train(config, sys.argv[1])["status"], type(load_network(sys.argv[1])).__name__)
"""


def run(*command: str | Path, exit_code: int = 0) -> str:
    """Run a command outside the repository, so that it finds only installed packages; return its output."""
    parts = [str(part) for part in command]
    done = subprocess.run(parts, capture_output=True, text=True, check=False, cwd=tempfile.gettempdir())
    if done.returncode != exit_code:
        printed = f"{done.stdout}{done.stderr}"
        raise SystemExit(f"{' '.join(parts)}\nshould exit with {exit_code}, but did with {done.returncode}:\n{printed}")
    return f"{done.stdout}{done.stderr if exit_code else ''}".strip()


def source_version() -> str:
    """Return the version from the package's source."""
    (version,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / "replenish" / "__init__.py").read_text(), re.MULTILINE)
    return version


def check_publisher() -> None:
    """Check that pyproject.toml has the repository's address, without which no release is made."""
    (section,) = re.findall(
        r"^\[project\.urls\]\n(.*?)^$", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE
    )
    if not re.search(r'^Repository = "https://[^"\s]+"$', section, re.MULTILINE):
        raise SystemExit('pyproject.toml should have Repository = "https://..." under [project.urls] before a release')


def check_version(tag: str | None = None) -> None:
    """Check that the changelog, the citation and, for a release, the tag name the version."""
    version = source_version()
    assert f"\n## {version} " in (ROOT / "CHANGELOG.md").read_text(), f"CHANGELOG.md has no section '## {version} ...'"
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(), f"CITATION.cff is not of version {version}"
    assert tag in (None, f"v{version}"), f"the tag should be v{version}, but got {tag}"


def build(folder: Path) -> Path:
    """Build the source distribution and the wheel, check that their pages render, and return the wheel."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    files = sorted(folder.iterdir())
    version = source_version()
    assert [file.name for file in files] == [f"replenish-{version}-py3-none-any.whl", f"replenish-{version}.tar.gz"]
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    return files[0]


def check_contents(wheel: Path) -> None:
    """Check that the wheel has every file of the package, templates and types too, and nothing else."""
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    listed = subprocess.run(["git", "ls-files", "replenish"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert packed == set(listed.stdout.split()), packed ^ set(listed.stdout.split())
    assert "replenish/py.typed" in packed


def environment(folder: Path, *requirements: str) -> Path:
    """Make an environment with the lowest versions of these requirements; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    constraints = [part for name in ("constraints.txt", "constraints-lowest.txt") for part in ("-c", ROOT / name)]
    run(python, *PIP, "install", "--quiet", *constraints, *requirements)
    run(python, *PIP, "check")
    return python


def installed(python: Path) -> dict[str, str]:
    """Return the version of every package in an environment, by name."""
    lines = run(python, *PIP, "list", "--format=freeze").lower().splitlines()
    return dict(line.split("==") for line in lines)


def check_core(wheel: Path, folder: Path) -> None:
    """Check that the core works with only the lowest numpy, and that the command then says what to install."""
    python = environment(folder, str(wheel))
    found = installed(python)
    assert set(found) - {"pip", "setuptools"} == {"numpy", "replenish"}, found
    assert found["numpy"] == lowest()["numpy"], found["numpy"]
    assert run(python, "-I", "-c", ONLY_NUMPY) == source_version()
    assert "pip install 'replenish[cli]'" in run(python.with_name("replenish"), "--help", exit_code=2)


def check_lab(wheel: Path, folder: Path) -> None:
    """Check that the lab works with its lowest versions: commands, a page, a training, and its network loaded again."""
    python = environment(folder, f"{wheel}[lab]")
    found = installed(python)
    higher = {name: found[name] for name, version in lowest().items() if found.get(name, version) != version}
    assert not higher, f"not the lowest: {higher}"
    command = python.with_name("replenish")
    assert run(command, "--version") == source_version()
    assert "wrn-28-10" in run(command, "list", "models")
    run(command, "explain", "--html", folder / "page.html")
    assert run(python, "-I", "-c", A_RUN, folder / "run") == "finished WideResNet"


def lowest() -> dict[str, str]:
    """Return the lowest version of every declared package, by name."""
    text = (ROOT / "constraints-lowest.txt").read_text()
    return dict(re.findall(r"^([\w-]+)==([\w.]+)$", text, re.MULTILINE))


def main() -> None:
    """Run all checks; the first failure ends the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tag", help="the tag of the release, which has to name the version")
    parser.add_argument("--dist", type=Path, help="a folder that does not exist yet, for the built files")
    parser.add_argument("--trial", action="store_true", help="check a build that is not for release: needs no address")
    arguments = parser.parse_args()
    if arguments.trial and (arguments.tag or arguments.dist):
        parser.error("--trial keeps no files: leave out --tag and --dist")
    if sys.version_info >= (3, 13):
        parser.error("the lowest versions have builds for Python 3.10 to 3.12; name one: make PYTHON=... release-check")
    with tempfile.TemporaryDirectory(prefix="replenish-release-") as temporary:
        folder = Path(temporary)
        if not arguments.trial:
            check_publisher()
        check_version(arguments.tag)
        print(
            f"version {source_version()}: changelog, citation{' and tag' if arguments.tag else ''} name it", flush=True
        )
        wheel = build(arguments.dist or folder / "dist")
        check_contents(wheel)
        print(f"built, with pages that render and all files: {wheel.name}", flush=True)
        check_core(wheel, folder / "core")
        print(f"only numpy {lowest()['numpy']}: imports, draws, and the command names what to install", flush=True)
        check_lab(wheel, folder / "lab")
        print("the lab with its lowest versions: commands, a page, a training, and its network loaded again")


if __name__ == "__main__":
    main()
