"""Room: runs. `manage.py evaluations RUN [--again N]`: what the evaluator said of a run, and scoring one once more."""

from argparse import ArgumentParser
from textwrap import indent

from django.core.management.base import BaseCommand, CommandError

from gymnode.screen import visible
from runs.models.evaluation import Evaluation, EvaluationState
from runs.models.run import Run
from runs.services.evaluating import evaluation_reopen


class Command(BaseCommand):
    """For those who run the site: the log is for curators' eyes and stands on no page."""

    help = "List a run's evaluations with their logs; with --again N score the stored outputs of a failed one again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=int, help="the number in the address of the run's page")
        parser.add_argument("--again", type=int, metavar="N", help="the evaluation's number on that page")

    def handle(self, *, run: int, again: int | None, **options: object) -> None:
        if not Run.objects.filter(pk=run).exists():
            raise CommandError(f"there is no run {run}")
        found = {each.ordinal: each for each in Evaluation.objects.filter(run=run)}
        if again is None:
            self.stdout.write("\n".join(_lines(each) for each in found.values()) or f"run {run} has no evaluation")
            return
        chosen = found.get(again)
        if chosen is None:
            known = ", ".join(map(str, found)) or "none"
            raise CommandError(f"run {run} has no evaluation {again}; there are: {known}")
        if chosen.state != EvaluationState.FAILED:
            raise CommandError(f"evaluation {again} is {chosen.state}; only a failed one can be scored again")
        evaluation_reopen(evaluation=chosen)
        self.stdout.write(f"run {run}: evaluation {again} is asked for again")


def _lines(evaluation: Evaluation) -> str:
    score = f", score {evaluation.score.normalize():f}" if evaluation.score is not None else ""
    head = f"{evaluation.ordinal}. by {evaluation.by}, {evaluation.state}, try {evaluation.try_no}{score}"
    texts = [text for text in (evaluation.message, evaluation.log_tail) if text]
    # Strangers' words on an operator's terminal: what would act there becomes a symbol.
    said = [indent("\n".join(visible(line) for line in text.splitlines()), "   ") for text in texts]
    return "\n".join([head, *said])
