"""The hint on demand: shown once asked for, priced from then on, kept out of what strangers see."""

from decimal import Decimal

from runs.models.evaluation import Evaluation
from runs.wire import event_shape
from tests.site.catalog.packages import HINT
from tests.site.runs.driving import CONFIG, drive, trace

PLAY = """
task: example-task
steps:
  - call: {run_command: {command: "mkdir -p data/outputs; echo 1 > data/outputs/predictions.csv"}}
  - call: {eval: {}}
  - call: {view_hint: {}}
  - call: {view_hint: {}}
  - call: {finish: {}}
"""


def test_a_viewed_hint_is_taken_off_later_evaluations_only(queue, node, playbook, scorer) -> None:
    playbook(PLAY)
    run = drive(queue(CONFIG + "hint: on_demand\n"))
    first, final = Evaluation.objects.filter(run=run).order_by("ordinal")
    assert (first.score, final.score, final.penalty) == (80, 70, Decimal(10))
    assert (run.score, run.best) == (70, 80)
    assert [kind for kind, _ in trace(run)].count("hint_revealed") == 1
    seen = [body["text"] for kind, body in trace(run) if kind == "observed" and body["name"] == "view_hint"]
    assert all(HINT in text for text in seen)
    assert HINT not in repr([event_shape(event) for event in run.events.all()])


def test_a_run_without_hints_is_refused_and_pays_nothing(queue, node, playbook, scorer) -> None:
    playbook(PLAY)
    run = drive(queue())
    assert run.score == 80
    assert HINT not in repr(trace(run))
