"""`load_network` returns the network of a finished run, and refuses other folders."""

from __future__ import annotations

import dataclasses
import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch
from small_runs import DIGITS, TINY, Plain, blobs

from replenish.lab import RunConfig, load_network, train
from replenish.lab.data import Batches, load
from replenish.lab.models.layers import weights_sha256
from replenish.lab.runs import RunFolder
from replenish.lab.training import Stopped

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    train(dataclasses.replace(DIGITS.for_epochs(1), dropout=0.1), folder)
    return folder


def test_it_reproduces_the_recorded_error(finished: Path) -> None:
    network, result = load_network(finished), json.loads((finished / "result.json").read_text())
    assert weights_sha256(network) == result["weights_sha256"]
    dataset = load("digits")
    wrong = 0
    with torch.inference_mode():
        for images, labels in Batches(DIGITS.build_order(len(dataset.train_labels)), dataset).ordered("test"):
            wrong += int((network(images).argmax(dim=1) != labels).sum())
    assert 100 * wrong / len(dataset.test_labels) == pytest.approx(result["test_error"])
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_it_leaves_the_generator_as_it_was(finished: Path) -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    load_network(finished)
    assert torch.equal(torch.rand(1), expected)


def test_your_own_network_needs_its_function(tmp_path: Path) -> None:
    result = train(TINY, tmp_path, model=Plain, dataset=blobs())
    with pytest.raises(ValueError, match=r"model should be given for your own network, .*'plain' and got None"):
        load_network(tmp_path)
    with pytest.raises(ValueError, match=r"model should make the network of .*hidden\.weight"):
        load_network(tmp_path, model=partial(Plain, width=9))
    assert weights_sha256(load_network(tmp_path, model=Plain)) == result["weights_sha256"]


def test_half_precision_is_kept(tmp_path: Path) -> None:
    train(dataclasses.replace(TINY, precision="bf16-true"), tmp_path, model=Plain, dataset=blobs())
    assert load_network(tmp_path, model=Plain).state_dict()["out.weight"].dtype == torch.bfloat16


def test_unfinished_and_diverged_runs_are_refused(tmp_path: Path) -> None:
    def stop(event: dict[str, object]) -> None:
        if event["event"] == "epoch":
            raise KeyboardInterrupt

    with pytest.raises((Stopped, KeyboardInterrupt)):
        train(TINY, tmp_path / "stopped", model=Plain, dataset=blobs(), watch=stop)
    with pytest.raises(ValueError, match="should be of a finished run, but .*stopped has no result"):
        load_network(tmp_path / "stopped", model=Plain)

    hot = dataclasses.replace(TINY, learning_rate=1e30)
    assert train(hot, tmp_path / "hot", model=Plain, dataset=blobs())["status"] == "diverged"
    with pytest.raises(ValueError, match="should be of a finished run, but .*hot has status 'diverged'"):
        load_network(tmp_path / "hot", model=Plain)


def test_records_without_weights_are_refused() -> None:
    record = next(path.parent for path in sorted(RESULTS.rglob("result.json")) if '"finished"' in path.read_text())
    with pytest.raises(ValueError, match="has none, since records that are kept or shared leave out the weights"):
        load_network(record)
    with pytest.raises(OSError, match=r"config.json cannot be read"):
        load_network(RESULTS)


def test_weights_of_another_result_are_refused(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    config = RunConfig.from_dict(json.loads((finished / "config.json").read_text())).with_seed(1)
    train(config, other)
    shutil.copytree(finished, tmp_path / "run")
    shutil.copy(other / "checkpoint.pt", tmp_path / "run" / "checkpoint.pt")
    with pytest.raises(ValueError, match="does not belong to its result"):
        load_network(tmp_path / "run")
    content = bytearray((finished / "checkpoint.pt").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "run" / "checkpoint.pt").write_bytes(content)
    assert RunFolder(tmp_path / "run").checkpoints.load()[0] is None
    with pytest.raises(ValueError, match="is damaged"):
        load_network(tmp_path / "run")
