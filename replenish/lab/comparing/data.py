"""`compare`: does SRS help on these data, with this network?"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replenish import checks
from replenish.lab.comparing.answer import Answer, make_answer
from replenish.lab.comparing.data_plan import MODEL, ORDERS, check_ended, comparison_configs, is_named, warnings_about
from replenish.lab.comparing.page import optional_stopping, write_page, write_record
from replenish.lab.comparing.question import Outcomes, Question
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.jobs import Execution, WatchJobs, plan
from replenish.lab.launch import launch
from replenish.lab.machine import first_process
from replenish.lab.report.figures import curves
from replenish.lab.report.findings import FIELD
from replenish.lab.report.grouping import Group
from replenish.lab.report.text import dataset_name, recipe_text
from replenish.lab.runs import folder_of, read_run
from replenish.lab.statistics import PERCENT

if TYPE_CHECKING:
    from torch import nn

#: The metrics that can decide: the field in a run's result, the displayed name, the unit and the range.
METRICS: dict[str, dict[str, Any]] = {
    "error": {"field": FIELD, "metric": "Test error (%)", "unit": "points", "possible": PERCENT},
    "balanced-error": {
        "field": "test_balanced_error",
        "metric": "Balanced test error (%)",
        "unit": "points",
        "possible": PERCENT,
    },
    "loss": {"field": "test_loss", "metric": "Test loss", "possible": (0.0, math.inf)},
}
#: Further numbers, with their fields in a run's result. The online loss depends on the order even at equal weights.
BESIDES = {
    "Training loss, online": "train_loss",
    "Training loss, clean": "clean_loss",
    "Training error, clean (%)": "clean_error",
    "Seconds per run": "seconds",
}


def compare(
    data: Any,
    *,
    model: str | Callable[[], nn.Module] = MODEL,
    orders: Sequence[str] = ORDERS,
    seeds: int | Sequence[int] | None = None,
    metric: str = "error",
    margin: float | None = None,
    until_decided: bool = False,
    max_seeds: int | None = None,
    budget: float | None = None,
    runs: str | os.PathLike[str] = "runs",
    hardware: Hardware | None = None,
    parallel: int = 1,
    watch: WatchJobs | None = None,
    **recipe: Any,
) -> Answer:
    """Train one network with several orders over several seeds, and report which is better.

    Runs of one seed have the same initial weights, so differences are taken seed by seed. Finished runs are not
    repeated.

    Args:
        data: A dataset's name, a folder of images, or an `.npz` file; or data in memory, as
            `replenish.lab.data.as_dataset` accepts them: arrays, torch datasets, Hugging Face datasets.
        model: A network's name; a place to import it from, such as `module:function`, `torchvision:resnet18` or
            `timm:resnet18`; or a function that returns a network with fresh weights.
        orders: Names of orders; each of the others is compared with the first. See `replenish.lab.config.ORDER_NAMES`.
        seeds: A number of seeds, which are then 0, 1, 2, ... (5 by default), or the seeds themselves.
        metric: The metric that decides, on the test images after the last epoch: "error", "balanced-error" (every
            class counts equally) or "loss".
        margin: The largest difference that does not matter, in the metric's unit.
        until_decided: Whether to look after every seed and stop once it is decided. Leave out `seeds` then.
        max_seeds: The most seeds to run with `until_decided`; 40 by default.
        budget: Seconds for all runs. A seed starts only if it would end in time, judging by those before.
        runs: The folder for the runs' folders.
        hardware: The hardware of each run.
        parallel: How many runs at once, each in its own process. Only 1 can train a network or data that are in this
            process's memory.
        watch: Called with the events of the runs; by default a display in a terminal or a notebook.
        **recipe: Any other field of `RunConfig`, such as `epochs`, `batch_size`, `learning_rate`, `image_size`. A dict
            such as `learning_rate={"srs": 0.2, "reshuffling": 0.1}` has a value for each order. The default is 40
            effective epochs of the paper's recipe, with crops padded by an eighth of the image.

    Returns:
        The answer, with its verdicts, the metric by order and seed, and the path of its page of curves and every seed.

    Example:
        >>> import tempfile
        >>> from replenish.lab import compare
        >>> with tempfile.TemporaryDirectory() as runs:
        ...     found = compare("digits", seeds=2, epochs=1, orders=("reshuffling", "srs"), runs=runs)
        >>> sorted(found.values), found.verdicts[0].outcome
        (['reshuffling', 'srs'], 'undecided')
    """
    question = lab_question(
        orders, seeds, metric=metric, margin=margin, until_decided=until_decided, max_seeds=max_seeds
    )
    execution = Execution(Path(runs), parallel, hardware or Hardware(), budget)
    planned = PlannedComparison(data, question, execution, model=model, recipe=recipe)
    if watch is not None:
        return planned.run(watch)
    from replenish.lab.launch.display import display_of

    labels = [f"{job.config.order}, seed {job.config.seed}" for job in planned.jobs]
    with display_of(labels, in_logs=False) as display:
        return planned.run(display.watch)


def lab_question(
    orders: Sequence[str] = ORDERS, seeds: int | Sequence[int] | None = None, *, metric: str = "error", **options: Any
) -> Question:
    """Return a question about one of `METRICS`; the options are those of `Question`."""
    return Question(orders, seeds, **METRICS[checks.one_of("metric", metric, METRICS)], **options)


class PlannedComparison:
    """A comparison that has been checked but not yet run, with a config per order and a job per order and seed.

    Planning writes no file, so a command can announce the comparison first.

    Args:
        data: The data, as `compare` takes them.
        question: Which orders and seeds, and by which rule.
        execution: Where the runs are executed.
        model: The network, as `compare` takes it.
        recipe: The fields of `RunConfig` that are not the default.
    """

    def __init__(
        self,
        data: Any,
        question: Question,
        execution: Execution,
        *,
        model: str | Callable[[], nn.Module] = MODEL,
        recipe: Mapping[str, Any],
    ) -> None:
        self.question, self.execution = question, execution
        self.dataset, self.configs = comparison_configs(data, model, question.orders, recipe)
        self.jobs = plan(
            self.configs,
            question.seeds,
            execution.runs,
            hardware=execution.hardware,
            tensorboard=execution.tensorboard,
            command=execution.command,
            own={"model": None if isinstance(model, str) else model, "dataset": self.dataset},
        )
        check_ended(self.jobs, self.dataset)
        if execution.parallel > 1:
            for what, is_own in {"a network": not isinstance(model, str), "data": not is_named(data)}.items():
                if is_own:
                    raise ValueError(
                        f"{what} of your own can be trained in this process only, so parallel should be 1, but got "
                        f"{execution.parallel}"
                    )
        if execution.budget is not None and execution.hardware.devices * execution.hardware.num_nodes > 1:
            raise ValueError(f"budget should be left out for runs of several processes, but got {execution.budget:g} s")

    def run(self, watch: WatchJobs) -> Answer:
        """Execute the runs that have not ended, and return the answer."""
        question, execution, outcomes = self.question, self.execution, Outcomes(self.question)

        def run_round(seeds: Sequence[int]) -> None:
            places = [place for place, job in enumerate(self.jobs) if job.config.seed in seeds]
            jobs = [self.jobs[place] for place in places]
            ended = launch(jobs, execution.parallel, lambda place, event: watch(places[place], event))
            for job, result in zip(jobs, ended, strict=True):
                value = None
                if result["status"] == "finished" and (value := result.get(question.field)) is None:
                    raise ValueError(f"{job.folder} is of a release that did not measure {question.field}; remove it")
                outcomes.add(job.config.order, job.config.seed, value)

        outcomes.run_until_decided(run_round, parallel=execution.parallel, budget=execution.budget)
        groups = {config.order: self._group(config) for config in self.configs}
        besides = {
            what: found
            for what, field in BESIDES.items()
            if (found := {order: values for order, group in groups.items() if (values := group.by_seed(field))})
        }
        path = execution.runs / self._page_name()
        warnings = [
            *warnings_about(self.dataset, groups),
            *optional_stopping(question, sorted(outcomes.pairs()), path),
        ]
        answer = make_answer(outcomes, besides=besides, warnings=warnings, page=path)
        if first_process():
            self._write_page(answer, groups)
            write_record(answer, configs={config.order: config.slug for config in self.configs})
        return answer

    def _write_page(self, answer: Answer, groups: Mapping[str, Group]) -> None:
        recipes = list(dict.fromkeys(recipe_text(config) for config in self.configs))
        differ_in = "the order of their data only"
        if len(recipes) > 1:
            recipes = [f"{config.order}: {recipe_text(config)}" for config in self.configs]
            differ_in = "the order of their data and in the recipe of each order"
        write_page(
            answer,
            f"{dataset_name(self.configs[0])} with {self.configs[0].model}",
            recipes,
            command=self.execution.command,
            figures=(curves(groups, name="curves"),),
            differ_in=differ_in,
        )

    def _group(self, config: RunConfig) -> Group:
        folders = [folder_of(config.with_seed(seed), self.execution.runs) for seed in self.question.seeds]
        records = tuple(read_run(self.execution.runs, folder) for folder in folders if folder.exists())
        return Group(config.order, config, records)

    def _page_name(self) -> str:
        """Return a file name that identifies this comparison within its folder."""
        digest = hashlib.sha256("\n".join(config.slug for config in self.configs).encode()).hexdigest()[:8]
        data = re.sub(r"[^A-Za-z0-9._-]+", "_", self.dataset.name)
        metric = "" if self.question.field == FIELD else f"-{self.question.field}"
        return f"compare-{data}-{digest}{metric}.html"
