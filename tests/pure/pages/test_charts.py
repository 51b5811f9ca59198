"""Geometry of the charts: every number of a plot is a position between 0 and 100."""

import pytest

from portal.core import charts


def test_score_staircase_moves_right_then_up():
    spark = charts.spark([(15, 11.7), (30, 71.5)], now=40, limit=60)
    assert spark.path == "M0 100H25V88.3H50V28.5H66.67"
    assert [(p.x, p.y) for p in spark.points] == [("25", "88.3"), ("50", "28.5")]


def test_scores_come_in_order_of_time_however_given():
    assert charts.spark([(30, 71.5), (15, 11.7)], now=40, limit=60).path.startswith("M0 100H25")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "abc", None, [1], "1e999"])
def test_values_that_are_no_numbers_are_left_out(bad):
    """T3"""
    assert charts.spark([(10, bad)], now=20, limit=60).points == ()
    assert charts.dot_cell(bad, None, None).at == ""


def test_no_interval_is_drawn_where_one_end_is_missing():
    cell = charts.dot_cell(41.5, 36.2, None)
    assert (cell.at, cell.low, cell.high) == ("41.5", "", "")


def test_gauge_never_leaves_its_box():
    assert charts.gauge(90, 60).width == "100"
    assert charts.gauge(None, 60).width == "0"
    assert charts.gauge(5, 0).width == "0"


def test_gauge_draws_a_line_per_part():
    assert charts.gauge(1, 3, 3).ticks == ("33.33", "66.67")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.5, 0.7), (0, 60), (-30, 20), (3, 3)])
def test_ticks_are_round_and_enclose_the_data(low, high):
    ticks = charts.nice_ticks(low, high)
    assert ticks[0] <= low
    assert ticks[-1] >= high
    assert len(ticks) <= 12


def test_log_ticks_are_one_two_five():
    assert charts.log_ticks(5.2, 33) == (5, 10, 20, 50)


def test_curve_is_flat_beyond_its_points_and_names_baseline_and_reference():
    plot = charts.curve_plot([(0.5, 0), (0.6, 0.8), (0.7, 1)], baseline=0.5, reference=0.6)
    assert [p.kind for p in plot.points] == ["baseline", "reference"]
    assert [p.y for p in plot.points] == ["100", "20"]
    assert plot.path.startswith("M0 100")
    assert plot.path.endswith("100 0")


def test_a_falling_curve_is_drawn_too():
    plot = charts.curve_plot([(2.0, 0), (1.0, 1)], baseline=2.0, reference=None)
    assert plot.path.startswith("M0 0")


def test_an_axis_begins_at_zero_where_no_value_lies_below() -> None:
    plot = charts.curve_plot([(0, 1), (0.005, 1), (0.05, 0)], baseline=None, reference=None)
    assert plot.path.startswith("M0 0")
    assert (plot.x_ticks[0].at, plot.x_ticks[0].text) == ("0", "0")
    assert not plot.points
    below = charts.curve_plot([(-1, 0), (1, 1)], baseline=None, reference=None)
    assert below.x_ticks[0].text.startswith(("-", "−"))


def test_a_task_without_curve_draws_nothing():
    assert charts.curve_plot([], baseline=None, reference=None).path == ""


def test_pareto_front_leaves_out_the_dominated():
    plot = charts.scatter([(5, 12, "a", ""), (6, 5, "b", ""), (30, 24, "c", "reported")])
    assert plot.path.count("V") == 1
    assert plot.path.endswith("H100")
    assert len(plot.points) == 3


def test_costs_of_zero_have_no_place_on_a_log_axis():
    assert charts.scatter([(0, 80, "free", "")], log=True).points == ()


def test_strip_has_one_mark_per_step_in_its_lane():
    strip = charts.strip([("command", [1, 3]), ("wait", [2])], steps=3, evaluations=[(2, "11.7")], folds=[1])
    assert strip.lanes[0].path == "M0.5 1.5v9M2.5 1.5v9"
    assert strip.lanes[1].path == "M1.5 14.5v9"
    assert strip.evaluations[0].x == "50"
    assert strip.folds == ("33.33",)


def test_strip_of_a_run_without_steps_is_empty_and_whole():
    strip = charts.strip([("command", [])], steps=0)
    assert strip.width == 1
    assert [t.text for t in strip.ticks] == ["1"]


def test_strip_of_ten_thousand_steps_has_few_ticks():
    """V1"""
    assert len(charts.strip([("command", range(1, 10_001))], steps=10_000).ticks) < 12


def test_ledger_adds_up_and_leaves_room_for_what_is_left():
    parts = charts.ledger({"model": 15, "action": 30, "sleep": 0}, total=60)
    assert [(p.kind, p.x, p.width) for p in parts] == [("model", "0", "25"), ("action", "25", "50")]
