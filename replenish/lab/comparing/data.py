"""`compare`: the practitioner's question. Does SRS help on these data, with this network?"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replenish import checks
from replenish.lab.comparing.answer import Answer, make_answer
from replenish.lab.comparing.data_plan import MODEL, ORDERS, check_ended, comparison_configs, is_named, warnings_about
from replenish.lab.comparing.page import answer_page
from replenish.lab.comparing.question import ASK_AGAIN, Outcomes, Question, ask, run_until_decided
from replenish.lab.comparing.written import optional_stopping, write_page, write_record
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.data import Dataset
from replenish.lab.jobs import Execution, Job, WatchJobs, plan
from replenish.lab.launch import check_machines, launch
from replenish.lab.machine import first_process
from replenish.lab.report.figures import curves
from replenish.lab.report.grouping import Group, origins
from replenish.lab.report.text import dataset_name, recipe_words
from replenish.lab.runs import folder_of, read_run
from replenish.lab.show import Page
from replenish.lab.statistics import PERCENT

if TYPE_CHECKING:
    from torch import nn

    from replenish.lab.verdict import Verdict


@dataclass(frozen=True)
class LabMetric:
    """A number of a run's result that can decide: its field, its name for people, its unit and its range."""

    field: str
    label: str
    unit: str
    possible: tuple[float, float]


METRICS = {
    "error": LabMetric("test_error", "Test error (%)", "points", PERCENT),
    "balanced-error": LabMetric("test_balanced_error", "Balanced test error (%)", "points", PERCENT),
    "loss": LabMetric("test_loss", "Test loss", "", (0.0, math.inf)),
}
#: What is told beside the metric, by its field in the results. The online loss alone depends on the order also where
#: the weights do not.
BESIDES = {
    "Training loss, online": "train_loss",
    "Training loss, clean": "clean_loss",
    "Training error, clean (%)": "clean_error",
    "Seconds a run": "seconds",
}


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` found.

    Attributes:
        answer: Verdicts, numbers and warnings; `print(found.answer)` shows them.
        errors: Test error (in percent, after the last epoch) by order and seed.
        runs: Where the runs' folders are.
        page: The same as a page, with curves and every seed.
        diverged: How many runs ended without an error, since their loss was not a number any more.
    """

    answer: Answer
    errors: dict[str, dict[int, float]]
    runs: Path
    page: Path
    diverged: int = 0

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What was decided, each of the other orders against the first."""
        return self.answer.verdicts

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdicts in words."""
        return tuple(verdict.sentence for verdict in self.verdicts)

    def __repr__(self) -> str:
        return f"{self.answer}\nPage: {self.page}"

    def _repr_html_(self) -> str:
        return self.answer._repr_html_()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {**self.answer.to_dict(), "diverged": self.diverged, "runs": str(self.runs), "page": str(self.page)}


def compare(
    data: Any,
    *,
    model: str | Callable[[], nn.Module] = MODEL,
    orders: Sequence[str] = ORDERS,
    seeds: int | Sequence[int] = 5,
    metric: str = "error",
    margin: float | None = None,
    until_decided: bool = False,
    max_seeds: int = 40,
    budget: float | None = None,
    runs: str | os.PathLike[str] = "runs",
    hardware: Hardware | None = None,
    launcher: str = "local",
    parallel: int = 1,
    watch: WatchJobs | None = None,
    **recipe: Any,
) -> Comparison:
    """Train one network with several orders over several seeds, and say which is better.

    Runs of one seed have the same initial weights, so differences are taken seed by seed. Runs that are finished are
    not run again.

    Args:
        data: A dataset's name, a folder of images, an npz; or data of your own in memory, as
            `replenish.lab.data.as_dataset` takes them: arrays, torch datasets, Hugging Face's.
        model: A network's name; the place of one's code, `module:function`, `torchvision:resnet18` or `timm:resnet18`;
            or a function that makes one of your own with fresh weights.
        orders: Names of orders; each of the others is set against the first. See `replenish.lab.config.ORDER_NAMES`.
        seeds: How many (the first so many), or which.
        metric: What decides, on the test images after the last epoch: "error", "balanced-error" (every class counts
            alike) or "loss".
        margin: What difference would not matter, in the metric's unit.
        until_decided: Whether to look after every seed and stop when it is decided; `seeds` is then left out.
        max_seeds: With `until_decided`, how many seeds at most.
        budget: Seconds in all; no seed is begun that would not end in time, going by those before.
        runs: The folder that the runs' folders are in.
        hardware: What each run is executed on.
        launcher: Where runs are executed: "local", "slurm" or "ray". A network or data of your own in memory are in
            this process, and so are their runs.
        parallel: How many runs at once.
        watch: Told of what happens; by default a display, where there is a terminal or a notebook.
        **recipe: Any other field of `RunConfig`, such as `epochs`, `batch_size`, `learning_rate`, `image_size`; for
            one that differs between orders, a dict such as `learning_rate={"srs": 0.2, "reshuffling": 0.1}`. By default
            40 effective epochs of the paper's recipe, with crops padded by an eighth of the image.

    Example:
        >>> import tempfile
        >>> from replenish.lab import compare
        >>> with tempfile.TemporaryDirectory() as runs:
        ...     found = compare("digits", seeds=2, epochs=1, orders=("reshuffling", "srs"), runs=runs)
        >>> sorted(found.errors), found.verdicts[0].outcome
        (['reshuffling', 'srs'], 'undecided')
    """
    question = lab_question(
        orders, seeds, metric=metric, margin=margin, until_decided=until_decided, max_seeds=max_seeds
    )
    execution = Execution(Path(runs), launcher, parallel, hardware or Hardware(), budget)
    planned = plan_comparison(data, question, execution, model=model, recipe=recipe)
    if watch is not None:
        return planned.run(watch)
    from replenish.lab.launch.display import display_for_people

    with display_for_people([f"{job.config.order}, seed {job.config.seed}" for job in planned.jobs]) as display:
        return planned.run(display.watch)


def lab_question(
    orders: str | Sequence[str] = ORDERS,
    seeds: int | Sequence[int] = 5,
    *,
    metric: str = "error",
    ask_again: str = ASK_AGAIN,
    **options: Any,
) -> Question:
    """Return a question about one of `METRICS`; the options are those of `ask`."""
    chosen = METRICS[checks.one_of("metric", metric, METRICS)]
    return ask(
        orders,
        seeds,
        possible=chosen.possible,
        metric=chosen.label,
        unit=chosen.unit,
        field=chosen.field,
        ask_again=ask_again,
        **options,
    )


@dataclass(frozen=True)
class PlannedComparison:
    """A comparison that has been checked and not yet run: so that it can be announced.

    It has a config for each order and a job for each order and seed; the function that makes the network, if it has no
    name; and whether the data exist in this process only.
    """

    dataset: Dataset
    configs: Sequence[RunConfig]
    jobs: Sequence[Job]
    question: Question
    execution: Execution
    make_model: Callable[[], nn.Module] | None
    own_data: bool

    def run(self, watch: WatchJobs | None = None) -> Comparison:
        """Execute what is not finished, and return what was found."""
        execution, hardware = self.execution, self.execution.hardware
        here = execution.launcher == "local" and execution.parallel == 1
        if here:
            check_machines(self.jobs)
        elif self.make_model is not None or self.own_data:
            what = "a network" if self.make_model is not None else "data"
            raise ValueError(
                f"{what} of your own can be trained in this process only, so launcher should be 'local' and parallel "
                f"1, but got {execution.launcher!r} and {execution.parallel}"
            )
        if execution.budget is not None and hardware.devices * hardware.num_nodes > 1:
            raise ValueError(f"budget should be left out for runs of several processes, but got {execution.budget:g} s")
        outcomes = Outcomes(self.question)

        def run(seeds: Sequence[int]) -> None:
            places = [place for place, job in enumerate(self.jobs) if job.config.seed in seeds]
            hear = _shifted(watch, places[0])
            jobs = [self.jobs[place] for place in places]
            if here:  # in this process, which has the data already
                own = {"model": self.make_model, "dataset": self.dataset}
                ended = [job.run(partial(hear, place), **own) for place, job in enumerate(jobs)]
            else:
                ended = launch(jobs, execution.launcher, execution.parallel, hear)
            for job, result in zip(jobs, ended, strict=True):
                value = self._value(result, job) if result["status"] == "finished" else None
                outcomes.add(job.config.order, job.config.seed, value)

        stopped = run_until_decided(
            self.question, outcomes.values, run, parallel=execution.parallel, budget=execution.budget
        )
        outcomes.refuse_nothing()
        return self._found(outcomes, stopped)

    def _value(self, result: dict[str, Any], job: Job) -> float:
        if (value := result.get(self.question.field)) is None:
            raise ValueError(f"{job.folder} is of a release that did not measure {self.question.field}; remove it")
        return float(value)

    def _found(self, outcomes: Outcomes, stopped: str | None) -> Comparison:
        groups = {config.order: self._group(config) for config in self.configs}
        besides = {
            what: {order: found for order, group in groups.items() if (found := group.by_seed(field))}
            for what, field in BESIDES.items()
        }
        path = self.execution.runs / self._page_name()
        answer = make_answer(
            self.question,
            outcomes.values,
            stopped,
            besides={what: found for what, found in besides.items() if found},
            warnings=[
                *outcomes.warnings(),
                *warnings_about(self.dataset, groups),
                *optional_stopping(self.question, sorted(outcomes.pairs()), path),
            ],
        )
        errors = {order: group.errors for order, group in groups.items()}
        if first_process():
            write_page(answer, self._page(answer, groups), path)
            write_record(answer, path, configs={config.order: config.slug for config in self.configs})
        return Comparison(answer, errors, self.execution.runs, path, len(outcomes.diverged))

    def _page(self, answer: Answer, groups: Mapping[str, Group]) -> Page:
        recipes = list(dict.fromkeys(recipe_words(config) for config in self.configs))
        more: dict[str, Any] = {"command": self.execution.command, "origins": origins(groups.values())}
        if len(recipes) > 1:
            recipes = [f"{config.order}: {recipe_words(config)}" for config in self.configs]
            more["differ_in"] = "the order of their data and in what each order was given"
        title = f"{dataset_name(self.configs[0])} with {self.configs[0].model}"
        return answer_page(answer, title, recipes, figures=(curves(groups, name="curves"),), **more)

    def _group(self, config: RunConfig) -> Group:
        folders = [folder_of(config.with_seed(seed), self.execution.runs) for seed in self.question.seeds]
        records = tuple(read_run(self.execution.runs, folder) for folder in folders if folder.exists())
        return Group(config.order, config, records)

    def _page_name(self) -> str:
        """Return a file name that other comparisons in the same folder do not have."""
        digest = hashlib.sha256("\n".join(config.slug for config in self.configs).encode()).hexdigest()[:8]
        data = re.sub(r"[^A-Za-z0-9._-]+", "_", self.dataset.name)
        metric = "" if self.question.field == METRICS["error"].field else f"-{self.question.field}"
        return f"compare-{data}-{digest}{metric}.html"


def plan_comparison(
    data: Any,
    question: Question,
    execution: Execution,
    *,
    model: str | Callable[[], nn.Module] = MODEL,
    recipe: Mapping[str, Any],
) -> PlannedComparison:
    """Return what `compare` is going to run, with the data read and everything checked that can be.

    Nothing is written. `recipe` has the fields of `RunConfig` that are not the default.
    """
    dataset, configs = comparison_configs(data, model, question.orders, recipe)
    jobs = plan(
        configs,
        question.seeds,
        execution.runs,
        hardware=execution.hardware,
        tensorboard=execution.tensorboard,
        command=execution.command,
    )
    check_ended(jobs, dataset)
    make_model = None if isinstance(model, str) else model
    return PlannedComparison(dataset, configs, jobs, question, execution, make_model, not is_named(data))


def _shifted(watch: WatchJobs | None, first: int) -> WatchJobs:
    """Return a watch that counts jobs from the first of a round."""
    return (lambda place, event: watch(first + place, event)) if watch is not None else (lambda place, event: None)
