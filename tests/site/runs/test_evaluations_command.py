"""R16, T5: why a scoring failed can be read by those who run the site, and the stored outputs scored again."""

import pytest
from django.core.management import CommandError, call_command

from runs.models.run import Run
from runs.services.ticking import tick
from tests.site.runs.test_evaluating import FakeEvaluator, Outcome, Verdict, ask, finishing, fresh

__all__ = ["finishing"]  # a fixture


@pytest.fixture
def failed(finishing: Run, scorer: FakeEvaluator) -> Run:
    scorer.answer = lambda request: Verdict(Outcome.CRASHED)
    ask(finishing)
    for _ in range(5):
        tick()
    return finishing


def test_the_log_is_listed_and_a_failed_one_scored_again(failed: Run, scorer: FakeEvaluator, capsys) -> None:
    evaluation = failed.evaluations.get()
    evaluation.log_tail = "Traceback ...\nKeyError: 'accuracy'\n\x1b]52;c;cm0=\x07"
    evaluation.save()
    call_command("evaluations", str(failed.pk))
    said = capsys.readouterr().out
    assert "1. by final, failed, try 3\n" in said
    assert "\n   KeyError: 'accuracy'\n" in said
    assert not {"\x1b", "\x07"} & set(said)
    scorer.answer = lambda request: Verdict(accuracy=0.6)
    call_command("evaluations", str(failed.pk), "--again", "1")
    tick()
    assert fresh(evaluation).score == 80
    call_command("evaluations", str(failed.pk))
    assert "1. by final, scored, try 1, score 80\n" in capsys.readouterr().out


def test_what_can_not_be_scored_again_is_said(failed: Run) -> None:
    with pytest.raises(CommandError, match="no run 999999"):
        call_command("evaluations", "999999")
    with pytest.raises(CommandError, match="no evaluation 7; there are: 1"):
        call_command("evaluations", str(failed.pk), "--again", "7")
    call_command("evaluations", str(failed.pk), "--again", "1")
    with pytest.raises(CommandError, match="is requested; only a failed one"):
        call_command("evaluations", str(failed.pk), "--again", "1")
