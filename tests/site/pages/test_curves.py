"""Which points of a task's curve are named: only those that the manifest's own baseline and reference make."""

import pytest

from evaluator.manifest import ScoreRule
from portal.pages.tasks import curve_views


def marks(points: list[list[float]], **rule: float) -> list[str]:
    score = ScoreRule.model_validate(
        {
            "metrics": {"m": {"direction": "up", "decimals": 2}},
            "formula": "c * 100",
            "curves": {"c": {"metric": "m", "points": points}},
            **rule,
        }
    )
    (curve,) = curve_views(score)
    return [point.kind for point in curve.plot.points]


def test_points_of_nought_and_of_the_reference_are_named():
    assert marks([[0.266, 0], [0.83, 0.8], [0.952, 1]]) == ["baseline", "reference"]
    assert marks([[0, 0], [1, 0.7], [2, 1]], reference=70) == ["baseline", "reference"]


@pytest.mark.parametrize(
    "points", [[[0, 1], [0.005, 1], [0.05, 0]], [[0.5, 0], [0.7, 0.85], [0.78, 1]], [[0, 0], [1, 0], [2, 0.8], [3, 1]]]
)
def test_a_curve_that_says_neither_has_no_marks(points):
    assert marks(points) == []
