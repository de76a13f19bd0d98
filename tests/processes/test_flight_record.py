"""The flight recorder with real scripts: what it says of a batch is what the script printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from replenish.exec.draw_log import append_chunk, pack, read_chunks, unpack
from replenish.exec.flight_record import parts_folder, read_record

SCRIPT = Path(__file__).parent / "scripts" / "prints_batches.py"


def replenish(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=cwd)


def printed(text: str) -> list[list[int]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("kind", ["shuffled", "srs"])
def test_a_record_has_the_batches_that_the_script_trained_with(kind: str, tmp_path: Path) -> None:
    done = replenish("audit", "--epochs=0", "--record", "run.rec", SCRIPT, kind, cwd=tmp_path)
    batches = printed(done.stdout)
    record = read_record(tmp_path / "run.rec")
    assert record.whole
    assert [record.batch(step)[0].tolist() for step in range(record.steps)] == batches
    assert record.steps_with(17).tolist() == [step for step, batch in enumerate(batches) if 17 in batch]
    assert not parts_folder(tmp_path / "run.rec").exists()
    has_order = [each.order is not None for each in record.loaders[0][0].training]
    assert has_order == [kind == "srs"] * 3
    found = replenish("what", "run.rec", 12, "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["ranks"] == [batches[12]]
    found = replenish("when", "run.rec", 17, "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["steps"] == record.steps_with(17).tolist()


def test_exec_records_what_the_order_draws_as_its_config(tmp_path: Path) -> None:
    done = replenish("exec", "--order", "srs", "--seed", 3, "--record", "run.rec", SCRIPT, "plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    batches = printed(done.stdout)
    assert f"{len(batches)} training batches recorded in" in done.stderr
    assert "Traceback" not in done.stderr
    record = read_record(tmp_path / "run.rec")
    assert [record.batch(step)[0].tolist() for step in range(record.steps)] == batches
    assert all(each.order is not None for each in record.loaders[0][0].training)
    assert (tmp_path / "run.rec").stat().st_size < 2000


def test_the_record_of_a_killed_run_can_be_read(tmp_path: Path) -> None:
    done = replenish("audit", "--epochs=0", "--record", "run.rec", SCRIPT, "srs", "kill", cwd=tmp_path)
    batches = printed(done.stdout)
    assert len(batches) == 31
    # The command itself was not killed, and has finished the record.
    record = read_record(tmp_path / "run.rec")
    assert record.steps >= 30
    assert [record.batch(step)[0].tolist() for step in range(record.steps)] == batches[: record.steps]
    # With `exec` the command is the killed process itself.
    replenish("exec", "--record", "killed.rec", SCRIPT, "plain", "kill", cwd=tmp_path)
    assert not (tmp_path / "killed.rec").exists()
    found = replenish("what", "killed.rec", 29, cwd=tmp_path)
    assert "The run was killed: its last second may be missing." in " ".join(found.stdout.split()), found.stderr


def test_a_log_that_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    log = tmp_path / "1.draws"
    for number in range(3):
        header, payload = pack(np.arange(number, 100))
        append_chunk(log, {"kind": "batches", "number": number, **header}, payload)
    whole = log.read_bytes()
    for length in range(len(whole)):
        log.write_bytes(whole[:length])
        found = [header["number"] for header, _ in read_chunks(log)]
        assert found == list(range(len(found)))
        assert len(found) < 3


@pytest.mark.parametrize("values", [[], [7], [0, 255, 256], [-(2**63), 2**63 - 1, 5], [10**12, 10**12 + 3]])
def test_packed_integers_are_the_same_again(values: list[int]) -> None:
    assert unpack(*pack(np.array(values, dtype=np.int64))).tolist() == values


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    replenish("audit", "--epochs=1", "--record", "run.rec", SCRIPT, "srs", cwd=tmp_path)
    path = tmp_path / "run.rec"
    path.write_bytes(path.read_bytes()[:-10])
    found = replenish("what", "run.rec", 1, cwd=tmp_path)
    assert (found.returncode, found.stderr.startswith("replenish: run.rec is cut off or damaged")) == (2, True)
    (tmp_path / "notes.txt").write_text("mine")
    refused = replenish("audit", "--record", "notes.txt", SCRIPT, "srs", cwd=tmp_path)
    assert "should name a new file, or an earlier record" in refused.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"
