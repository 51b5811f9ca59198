"""task.yaml: every fault in one list with its line, and the score of metrics."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.formula import FormulaError
from evaluator.manifest import (
    Faults,
    manifest_from_json,
    manifest_parse,
    manifest_refusals,
    score_compute,
)
from tests.pure.evaluator.packages import MANIFEST

RULE = manifest_parse(MANIFEST).score


def faults(text: str) -> str:
    with pytest.raises(Faults) as caught:
        manifest_parse(text)
    return str(caught.value)


def test_a_whole_manifest_is_read_and_survives_json() -> None:
    manifest = manifest_parse(MANIFEST)
    assert manifest.evaluations.by_agent == 3
    assert manifest.size == "full"
    assert manifest_from_json(manifest.to_json()) == manifest


def test_every_fault_is_in_one_list_with_line_and_field() -> None:
    text = MANIFEST.replace("gpus: 0", "gpu: 0").replace("penalty: 10", "penalty: '10'").replace("CC-BY-4.0", "[]")
    found = faults(text)
    assert "task.yaml:7: nodes[0].gpu: unknown key; known here: count, cpus, gpu_memory_gb, gpus" in found
    assert "task.yaml:14: hint.penalty: Input should be a valid number, not '10'" in found
    assert "task.yaml:6: source.licence" in found
    assert len(found.splitlines()) == 3


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("schema: 1", "schema: true", "schema"),
        ("schema: 1", "schema: 2", "schema"),
        ("id: example-task", "id: Example Task", "id"),
        ("final: 1", "final: false", "evaluations.final"),
        ("feedback: metrics", "feedback: off", "not 'off'"),
        ("feedback: metrics", "feedback: yes", "not 'yes'"),
        ("by_agent: 3", "by_agent: 1:30", "not '1:30'"),
        ("path: data", "path: ../data", "must be a path inside"),
        ("path: data", "path: /data", "must be a path inside"),
        ("100 * acc_score", "100 * acc", "known: acc_score, accuracy, length"),
        ("100 * acc_score", "100 * acc_score + length", "direction none"),
        ("100 * acc_score", "acc_score.real", "isn't in the language"),
        ("100 * acc_score", "accuracy", "doesn't use this curve"),
        ("metric: accuracy", "metric: f1", "isn't declared"),
        ("[0.60, 0.9]", "[0.40, 0.9]", "must rise"),
        ("[0.60, 0.9]", "[0.60, 9]", "from 0 to 1"),
        ("[0.60, 0.9]", "[.nan, 0.9]", "finite"),
        ("title: An example", "title: An example\ntitle: Another", "stands twice (first on line 3)"),
        ("title: An example", "title: &a An example", "anchors and aliases"),
        ("title: An example", "title: !!python/name:os.system x", "tag"),
        ("title: An example", "", "title: missing; add it"),
    ],
)
def test_a_wrong_value_is_told_where_and_why(old: str, new: str, told: str) -> None:
    assert told in faults(MANIFEST.replace(old, new, 1))


def test_a_character_or_a_version_that_there_is_not_is_told_with_its_line() -> None:
    for escape in ("\\UFFFFFFFF", "\\U00110000"):
        found = faults(MANIFEST.replace("title: An example", f'title: "{escape}"', 1))
        assert "line 3: not YAML: a number here is too large" in found
    assert "line 2: not YAML" in faults("# a task\n%YAML 1." + "9" * 5000 + "\n---\n")


@pytest.mark.parametrize("text", ["", "[]", "a: [", "a: *b", "x\0y", "[" * 1000, "- " * 1000 + "x", "{" * 40])
def test_text_that_is_no_manifest_is_refused_and_never_raises_anything_else(text: str) -> None:
    faults(text)


def test_only_true_and_false_are_booleans_and_numbers_are_as_written() -> None:
    manifest = manifest_parse(
        MANIFEST.replace("labels: []", "labels: [on, off, no]").replace("seconds: 20", "seconds: 012")
    )
    assert manifest.nodes[0].labels == ("on", "off", "no")
    assert manifest.sandbox.seconds == 12


def test_a_judge_or_a_service_is_refused_with_the_sentence() -> None:
    text = MANIFEST.replace("seconds: 20", "seconds: 20, judge: some-model") + "services: {model: {usd: 1}}\n"
    found = [fault.message for fault in manifest_refusals(manifest_parse(text))]
    assert len(found) == 2
    assert all("until then a task that asks for one is refused" in message for message in found)


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("", "assets: [{name: base, sha256: " + "a" * 64 + ", bytes: 1, source: there, mount: data/base}]\n", "assets"),
        ("", "secrets: [HUB_TOKEN]\n", "secrets"),
        ("", "env: {kind: lock, lock: requirements.lock}\n", "env.kind"),
        ("internet: false", "internet: true", "nodes[0].internet"),
    ],
)
def test_what_comes_later_is_refused_and_never_left_out_in_silence(old: str, new: str, where: str) -> None:
    text = MANIFEST.replace(old, new, 1) if old else MANIFEST + new
    (found,) = manifest_refusals(manifest_parse(text))
    assert found.where == where
    assert "comes in a later release" in found.message
    assert manifest_refusals(manifest_parse(MANIFEST)) == []


def test_one_workspace_for_several_nodes_is_refused_and_for_one_is_not() -> None:
    text = MANIFEST + "storage: shared\n"
    assert manifest_refusals(manifest_parse(text)) == []
    (found,) = manifest_refusals(manifest_parse(text.replace("count: 1", "count: 2", 1)))
    assert found.where == "storage"


@pytest.mark.parametrize(
    ("accuracy", "score"),
    [(0.5, "0"), (0.4, "0"), (0.55, "45"), (0.6, "90"), (0.65, "95"), (0.7, "100"), (0.9, "100")],
)
def test_a_score_follows_its_curve_and_is_clamped(accuracy: float, score: str) -> None:
    rule = manifest_parse(MANIFEST).score
    assert score_compute(rule, {"accuracy": accuracy, "length": 3.0}) == Decimal(score)


def test_the_scale_is_squeezed_above_the_format_credit() -> None:
    rule = manifest_parse(MANIFEST.replace("  formula", "  format_credit: 10\n  formula")).score
    assert score_compute(rule, {"accuracy": 0.0, "length": 0.0}) == 10
    assert score_compute(rule, {"accuracy": 0.55, "length": 0.0}) == Decimal("50.5")


def test_a_missing_metric_is_named() -> None:
    with pytest.raises(FormulaError, match="length"):
        score_compute(manifest_parse(MANIFEST).score, {"accuracy": 0.5})


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_metric_has_a_score_from_0_to_100(accuracy: float, length: float) -> None:
    score = score_compute(RULE, {"accuracy": accuracy, "length": length})
    assert 0 <= score <= 100
