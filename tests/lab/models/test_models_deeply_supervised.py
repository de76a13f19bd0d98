"""Companion losses, and the one way to a training loss."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from replenish.lab.models import DeeplySupervisedNet, build, training_loss
from replenish.lab.models.plain import squared_hinge


def test_squared_hinge_by_hand() -> None:
    logits = torch.tensor([[2.0, 0.5, -3.0]])
    # Class 0 is right and beyond the margin; class 1 is inside it, class 2 beyond it.
    assert squared_hinge(logits, torch.tensor([0])).item() == pytest.approx((0 + 1.5**2 + 0) / 3)
    assert squared_hinge(logits, torch.tensor([1])).item() == pytest.approx((3**2 + 0.5**2 + 0) / 3)


def test_logits_do_not_depend_on_the_companions() -> None:
    torch.manual_seed(0)
    model = DeeplySupervisedNet(1, 10, 8, dropout=0.0)
    images, targets = torch.randn(3, 1, 8, 8), torch.tensor([0, 4, 9])
    logits, companions = model(images, targets)
    torch.testing.assert_close(model(images), logits)
    assert companions > 0
    model.companion_weight = 0.0
    assert model(images, targets)[1] == 0


def test_training_loss_adds_the_companions_where_there_are_any() -> None:
    torch.manual_seed(0)
    images, targets = torch.randn(3, 1, 8, 8), torch.tensor([0, 4, 9])
    model = DeeplySupervisedNet(1, 10, 8, dropout=0.0, companion_weight=0.5)
    logits, companions = model(images, targets)
    loss, same = training_loss(model, images, targets)
    torch.testing.assert_close(same, logits)
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets) + companions)

    wrapped = nn.Module()
    wrapped.module, wrapped.forward = model, model.forward
    torch.testing.assert_close(training_loss(wrapped, images, targets)[0], loss)

    plain = build("resnet-8", 1, 10, 8)
    loss, logits = training_loss(plain, images, targets, F.multi_margin_loss)
    torch.testing.assert_close(loss, F.multi_margin_loss(logits, targets))


def test_companions_sit_on_whole_feature_maps() -> None:
    for image_size, sides in ((32, (32, 16, 8)), (8, (8, 4, 2)), (9, (9, 4, 2))):
        model = DeeplySupervisedNet(3, 10, image_size)
        assert [block.companion.in_features for block in model.blocks] == [192 * side**2 for side in sides]
        logits, companions = model(torch.randn(2, 3, image_size, image_size), torch.tensor([1, 2]))
        assert logits.shape == (2, 10)
        assert companions.shape == ()
