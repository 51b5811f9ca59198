"""One run through the whole engine: scripted model on a wire, real gymd, signed results."""

from decimal import Decimal
from itertools import pairwise

from runs.agent.events import Kind
from runs.ledger import clock_sums
from runs.models.evaluation import Evaluation
from runs.models.log import OutboxMessage
from runs.selectors import run_spans
from tests.site.runs.driving import drive, kinds, trace

PLAY = """
task: example-task
steps:
  - say: "I write the outputs."
    call: {run_command: {command: "mkdir -p data/outputs && echo 1 > data/outputs/predictions.csv && cat task/run.py"}}
  - say: "Is it any good?"
    call: {eval: {}}
  - say: "I think."
    call: {think: {thought: "enough"}}
  - say: "A nap."
    call: {sleep: {seconds: 1}}
  - say: "Done."
    call: {finish: {summary: "done"}}
"""


def test_a_run_goes_from_queue_to_score(queue, node, playbook, scorer) -> None:
    playbook(PLAY)
    run = drive(queue())
    assert (run.status, run.end_reason, run.score) == ("finished", "finish", Decimal(80))
    assert kinds(run)[0] == Kind.TASK_GIVEN
    agent = [kind for kind in kinds(run) if kind in set(Kind)]
    step = [Kind.REPLIED, Kind.ACTION_SENT, Kind.OBSERVED]
    evaluated = [Kind.REPLIED, Kind.ACTION_SENT, Kind.EVALUATION_SCORED, Kind.OBSERVED]
    assert agent == [Kind.TASK_GIVEN, *step, *evaluated, *step, *step, *step, Kind.EVALUATION_SCORED]
    outcomes = [body["outcome"] for kind, body in trace(run) if kind == Kind.OBSERVED]
    assert outcomes == ["ok"] * 5
    assert [event.seq for event in run.events.order_by("seq")] == list(range(1, run.seq + 1))


def test_the_nodes_are_given_back_and_others_are_told(queue, node, playbook, scorer) -> None:
    playbook(PLAY)
    run = drive(queue())
    assert not node.leases.filter(released_at=None).exists()
    topics = list(OutboxMessage.objects.order_by("id").values_list("topic", flat=True))
    assert topics == ["evaluation_scored", "evaluation_scored", "run_ended"]
    first, final = Evaluation.objects.filter(run=run).order_by("ordinal")
    assert (first.by, final.by, final.from_store) == ("agent", "final", first)


def test_every_second_of_a_run_belongs_to_one_kind(queue, node, playbook, scorer) -> None:
    playbook(PLAY)
    run = drive(queue())
    spans = run_spans(run)
    assert all(a.ended_at == b.started_at for a, b in pairwise(spans))
    sums = clock_sums(spans)
    assert abs(sums.charged_s - run.charged_s) < 0.01
    assert sums.by_kind["sleep"] > 0.9  # what leads up to it belongs to the engine
