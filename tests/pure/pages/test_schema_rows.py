"""JSON schemas as rows of the docs: every field of every part stands there, and of the manifest most are told."""

from evaluator.manifest import Manifest
from portal.pages.schema import schema_rows
from runs.agent.spec import AgentSpec


def test_items_and_values_of_free_names_are_told_field_by_field() -> None:
    rows = {row.name: row for row in schema_rows(Manifest.model_json_schema(by_alias=True))}
    for name in ("nodes[].gpus", "score.metrics.NAME.direction", "score.curves.NAME.points", "services.NAME.usd"):
        assert name in rows
    assert rows["score.metrics.NAME.direction"].kind == "up | down | none"
    assert (rows["limits.steps"].default, rows["limits.steps"].required) == ("300", False)


def test_every_top_level_field_of_a_manifest_and_of_a_config_says_what_it_is() -> None:
    manifest = schema_rows(Manifest.model_json_schema(by_alias=True))
    assert [row.name for row in manifest if not row.about and "." not in row.name] == []
    config = schema_rows(AgentSpec.model_json_schema(by_alias=True))
    assert {"name", "model", "model.provider", "limits.usd"} <= {row.name for row in config}
