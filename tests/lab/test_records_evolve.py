"""A later release, whose configs have one more field, reads, reports and resumes the records of this release."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from small_runs import TINY, blobs, dropping

from replenish.lab import config as config_module
from replenish.lab import train
from replenish.lab.config import RunConfig
from replenish.lab.experiments import configs
from replenish.lab.report import write_report
from replenish.lab.runs import folder, folder_of, read_runs
from replenish.lab.training import Stopped

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> type[RunConfig]:
    """Return the config class of a later release, which replaces ours wherever records are read."""
    added = config_module._added("7.3.0", 5, before=1)
    made = dataclasses.make_dataclass("LaterConfig", [("warm_up", "int", added)], bases=(RunConfig,), frozen=True)
    monkeypatch.setattr(folder, "RunConfig", made)
    return made


def test_the_committed_records_are_read_and_keep_their_names(later: type[RunConfig]) -> None:
    records = read_runs(RESULTS)
    assert len(records) >= 29
    for record in records:
        assert isinstance(record.config, later)
        assert record.status == "finished"
        assert RESULTS / record.path in (
            folder_of(record.config, RESULTS / Path(record.path).parts[0]),
            folder_of(record.config, RESULTS),
        )


def test_the_committed_records_are_reported_as_before(later: type[RunConfig], tmp_path: Path) -> None:
    experiments = {"mini": {name: later.from_dict(made.to_dict()) for name, made in configs("mini").items()}}
    _, markdown = write_report(RESULTS / "table3-mini", tmp_path / "report.html", experiments=experiments)
    errors = {record.result["test_error"] for record in read_runs(RESULTS / "table3-mini") if record.result}
    text = markdown.read_text()
    assert all(f"{error:.2f}" in text for error in errors)


def test_a_run_stopped_by_the_earlier_release_resumes_exactly(
    later: type[RunConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(event: dict[str, object]) -> None:
        if event["event"] == "epoch":
            raise Stopped("stopped", 15)

    with monkeypatch.context() as patch:
        patch.setattr(folder, "RunConfig", RunConfig)
        whole = train(TINY, tmp_path / "whole", model=dropping, dataset=blobs())
        with pytest.raises(Stopped):
            train(TINY, tmp_path / "half", model=dropping, dataset=blobs(), watch=stop)
    written = (tmp_path / "half" / "config.json").read_bytes()
    ended = train(later.from_dict(json.loads(written)), tmp_path / "half", model=dropping, dataset=blobs())
    assert ended["weights_sha256"] == whole["weights_sha256"]
    assert (tmp_path / "half" / "config.json").read_bytes() == written
