"""tf.data and Hydra: their pages' scripts, which go on where they ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration_support import EXAMPLES, check_log, run


def test_tf_data(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow", reason="needs TensorFlow, which is too large for the environment of the tests")
    script = EXAMPLES / "train_tf_data.py"
    for start, stop in ((0, 7), (7, 30), (30, 52)):
        run(script, tmp_path, "--until", stop)
        check_log(tmp_path, start, stop)


def test_hydra(tmp_path: Path) -> None:
    pytest.importorskip("hydra", reason="needs Hydra: pip install hydra-core")
    script, run_folder = EXAMPLES / "train_hydra.py", f"hydra.run.dir={tmp_path / 'hydra'}"
    for start, stop in ((0, 7), (7, 30), (30, 52)):
        run(script, f"folder={tmp_path}", f"until={stop}", run_folder)
        check_log(tmp_path, start, stop)
    with pytest.raises(AssertionError, match="seed is 3 in the state but 4 here"):
        run(script, f"folder={tmp_path}", "until=60", "sampler.seed=4", run_folder)
