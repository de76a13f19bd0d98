"""The lab: the paper's networks, data, training and experiments.

`RunConfig` defines a run, `train` trains it, and `load_network` loads the trained network. `compare` measures whether
an order helps on your data, and `compare_trainings` whether it helps in a training of your own. All are imported when
first used, since importing torch takes seconds.
"""

from typing import TYPE_CHECKING

from replenish.deferred import attributes as _attributes

if TYPE_CHECKING:
    from replenish.lab.comparing.answer import Answer as Answer
    from replenish.lab.comparing.data import compare as compare
    from replenish.lab.comparing.function import compare_trainings as compare_trainings
    from replenish.lab.config import Hardware as Hardware
    from replenish.lab.config import RunConfig as RunConfig
    from replenish.lab.training import load_network as load_network
    from replenish.lab.training import train as train
else:
    __getattr__, __dir__, __all__ = _attributes(
        __name__,
        {
            "Answer": "comparing.answer",
            "Hardware": "config",
            "RunConfig": "config",
            "compare": "comparing.data",
            "compare_trainings": "comparing.function",
            "load_network": "training",
            "train": "training",
        },
    )
