"""The start of the experiment: a network at a minimum of its loss over all images, and the curvatures there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from replenish.draws import derived_seed
from replenish.lab.data import load
from study.noise.setting import Setting

_CLASSES = 10
_AT_REST = 1e-6  # with a gradient this short, a step is smaller than the noise of a batch


@dataclass(frozen=True)
class Problem:
    """A network with one hidden layer, its data, and its loss as a function of one vector of all weights."""

    images: Tensor  # (N, pixels + 1), standardised, in double precision; the last column is 1, for the biases
    targets: Tensor  # (N, classes), one-hot
    hidden: int  # units of the hidden layer
    weight_decay: float  # lambda in lambda/2 |w|^2

    @property
    def shapes(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Shapes of the matrices that a vector of weights is cut into. The last row of each matrix has the biases."""
        return (self.images.shape[1], self.hidden), (self.hidden + 1, _CLASSES)

    def layers(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return views of the matrices for weights of shape (networks, weights)."""
        first, second = self.shapes
        cut = first[0] * first[1]
        return weights[:, :cut].view(-1, *first), weights[:, cut:].view(-1, *second)

    def logits(self, weights: Tensor) -> Tensor:
        """Return the logits of all images under one vector of weights."""
        first, second = self.layers(weights[None])
        return (self.images @ first[0]).tanh() @ second[0, :-1] + second[0, -1]

    def loss(self, weights: Tensor) -> Tensor:
        """Return the loss of one vector of weights on all images."""
        fit = torch.nn.functional.cross_entropy(self.logits(weights), self.targets)
        return fit + self.weight_decay / 2 * weights.square().sum()


@dataclass(frozen=True)
class Plateau:
    """A minimum of the loss.

    `curvatures` are the eigenvalues of the Hessian, from flat to sharp, and `directions` its eigenvectors, one per
    column. `gradient` is the length of the gradient, and `error` the share of training images misclassified.
    """

    weights: Tensor
    curvatures: Tensor
    directions: Tensor
    loss: float
    gradient: float
    error: float


def problem_of(setting: Setting) -> Problem:
    """Return the network and the data of an experiment, the same for all seeds."""
    data = load("digits", images_per_class=setting.images_per_class)
    pixels = torch.from_numpy(data.train_images.reshape(len(data.train_labels), -1).astype("float64"))
    images = torch.cat([(pixels - pixels.mean()) / pixels.std(), torch.ones(len(pixels), 1, dtype=torch.float64)], 1)
    targets = torch.nn.functional.one_hot(torch.from_numpy(data.train_labels.copy()), _CLASSES).double()
    return Problem(images, targets, setting.hidden, setting.weight_decay)


def find_plateau(problem: Problem, seed: int) -> Plateau:
    """Train from random weights to a minimum, with all images at every step, and return it with its curvatures.

    Raises:
        RuntimeError: No minimum was reached.
    """
    generator = torch.Generator().manual_seed(derived_seed(seed, "plateau"))
    parts = [torch.randn(shape, generator=generator, dtype=torch.float64) / shape[0] ** 0.5 for shape in problem.shapes]
    weights = torch.cat([part.flatten() for part in parts]).requires_grad_()
    optimizer = torch.optim.LBFGS(
        [weights],
        max_iter=10_000,
        tolerance_grad=_AT_REST / 100,
        tolerance_change=0.0,
        history_size=50,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = problem.loss(weights)
        loss.backward()
        return loss

    optimizer.step(closure)
    closure()
    found = weights.detach()
    assert weights.grad is not None
    if (gradient := float(weights.grad.norm())) > _AT_REST:
        raise RuntimeError(f"no minimum was reached from seed {seed}: the gradient has length {gradient:g}")
    hessian = torch.autograd.functional.hessian(problem.loss, found, vectorize=True)
    curvatures, directions = torch.linalg.eigh(hessian)
    wrong = problem.logits(found).argmax(1) != problem.targets.argmax(1)
    return Plateau(found, curvatures, directions, float(problem.loss(found)), gradient, float(wrong.double().mean()))
