from __future__ import annotations

from pathlib import Path

import pytest
from test_data_fakes import fake_contents, fake_files, write_archive, write_folder
from typer.testing import CliRunner

from replenish.cli.data import app as data_app
from replenish.lab.data.cifar import CIFAR100, CIFARS

CONTENTS = fake_contents(CIFAR100)
FILES = fake_files(CIFAR100, CONTENTS)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setitem(CIFARS, "cifar100", FILES)
    monkeypatch.delenv("REPLENISH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return lambda *arguments: CliRunner().invoke(data_app, [str(argument) for argument in arguments])


def sentence(result) -> str:
    """Check for exit code 2 and one sentence on stderr, and return the sentence."""
    assert result.exit_code == 2
    assert result.stderr.startswith("replenish: ")
    assert result.stderr.count("\n") == 1
    assert isinstance(result.exception, SystemExit)
    return result.stderr


def test_verify_lists_the_datasets(run, tmp_path: Path):
    path = write_archive(tmp_path / "cifar-100-python.tar.xz", FILES, CONTENTS)
    result = run("verify", "--root", tmp_path)
    assert result.exit_code == 0
    lines = {line.split("│")[1].strip(): line for line in result.stdout.splitlines() if line.startswith("│")}
    assert "inside scikit-learn" in lines["digits"]
    assert "absent" in lines["cifar10"]
    assert "whole" in lines["cifar100"]
    assert str(path) in lines["cifar100"]


def test_verify_finds_damage(run, tmp_path: Path):
    folder = write_folder(tmp_path, FILES, CONTENTS)
    (folder / "train").write_bytes(b"x")
    result = run("verify", "--root", tmp_path)
    assert result.exit_code == 1
    assert "damaged" in result.stdout
    assert "train is not the official file" in result.stdout


def test_verify_fails_if_a_named_dataset_is_absent(run, tmp_path: Path):
    write_folder(tmp_path, FILES, CONTENTS)
    assert run("verify", "cifar100", "--root", tmp_path).exit_code == 0
    assert run("verify", "cifar10", "--root", tmp_path).exit_code == 1


def test_verify_uses_the_variable(run, tmp_path: Path, monkeypatch):
    write_folder(tmp_path, FILES, CONTENTS)
    assert run("verify", "cifar100").exit_code == 1
    monkeypatch.setenv("REPLENISH_DATA", str(tmp_path))
    assert run("verify", "cifar100").exit_code == 0


def test_bad_input(run, tmp_path: Path):
    assert "name should be one of cifar10, cifar100, cifar100-coarse, but got 'mnist'" in sentence(run("get", "mnist"))
    assert "but got 'mnist'" in sentence(run("verify", "mnist"))
    assert "--root should be a folder that exists" in sentence(run("verify", "--root", tmp_path / "nowhere"))
    assert "url should be an address that begins with https://" in sentence(
        run("get", "cifar100", "--url", "ftp://x/y")
    )
    file = tmp_path / "file"
    file.write_text("")
    assert str(file) in sentence(run("get", "cifar100", "--root", file))
    assert run("get").exit_code == 2


def test_get_says_where(run, tmp_path: Path):
    archive = write_archive(tmp_path / "cifar-100-python.tar.gz", FILES, CONTENTS)
    result = run("get", "cifar100", "--root", tmp_path)
    assert result.exit_code == 0
    assert result.stdout == f"cifar100 is in {archive}, verified.\n"
    assert result.stderr == ""


def test_get_without_a_network(run, tmp_path: Path):
    result = run("get", "cifar100", "--root", tmp_path, "--url", "http://127.0.0.1:9/x.tar.gz")
    assert "could not download from 127.0.0.1" in sentence(result)
