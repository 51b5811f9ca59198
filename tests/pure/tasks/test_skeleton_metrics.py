"""The evaluators that `task new` offers, against values worked out by hand."""

import importlib.util
import math
from types import ModuleType

import pytest

from tests.pure.tasks.conftest import TASKS


@pytest.fixture(scope="module")
def metrics() -> ModuleType:
    spec = importlib.util.spec_from_file_location("skeleton_metrics", TASKS / "skeleton" / "evaluation" / "metrics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "predictions", "labels", "value"),
    [
        ("accuracy", [" a", "b", "C"], ["a", "c", "c"], 1 / 3),
        ("exact_match", ["The  cat", "dog"], ["the cat", "dogs"], 1 / 2),
        ("f1", ["a", "a", "b"], ["a", "b", "b"], (2 / 3 + 2 / 3) / 2),
        ("f1", ["a", "a"], ["b", "b"], 0.0),
        ("rouge_l", ["police kill the gunman"], ["police killed the gunman"], 3 / 4),
        ("rouge_l", ["the gunman police killed", ""], ["police killed the gunman", ""], (1 / 2 + 1) / 2),
        ("bleu", ["the cat sat on the mat"], ["the cat sat on the mat"], 1.0),
        ("bleu", ["the cat sat on"], ["the cat sat on the mat"], math.exp(1 - 6 / 4)),
        ("bleu", ["mat the on sat cat the"], ["the cat sat on the mat"], 0.0),
        ("predictive_entropy", ["0.5 0.5", "1 0"], ["a", "b"], math.log(2) / 2),
    ],
)
def test_a_metric_gives_what_the_hand_gives(
    metrics: ModuleType, name: str, predictions: list[str], labels: list[str], value: float
):
    assert metrics.METRICS[name](predictions, labels) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "half half", "0.5 0.6", "nan 1", "-0.5 1.5"])
def test_what_is_no_distribution_is_refused(metrics: ModuleType, text: str):
    with pytest.raises(metrics.PredictionError, match="no distribution"):
        metrics.predictive_entropy([text], ["a"])
