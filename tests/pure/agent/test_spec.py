"""Agent configs: every rule, and every fault with its line."""

import json
from decimal import Decimal

import pytest
from pydantic import ValidationError

from runs.agent.spec import AgentSpec, SpecErrors, offered_tools, parse_spec, spec_digest
from runs.agent.spec_parts import Provider, ToolMode

FULL = """
name: react-claude-sonnet-4
agent: react
model:
  provider: anthropic
  name: claude-sonnet-4
  base_url: null
  extra_body: {}
  api_key: secret:ANTHROPIC_KEY
  temperature: 1.0
  max_output_tokens: 8192
  reasoning: {effort: null, budget_tokens: null}
  prices: null
  tool_mode: native
context: {window_tokens: 128000, compact_at_tokens: null, keep_recent: 0.5}
snapshot: {every_steps: null, every_minutes: 60, keep: 20}
tools: innovatorbench
hint: none
limits: {steps: 4000, usd: 50, tokens: null, hours: null}
on_node_loss: restore
feedback: {efficiency: false}
guardrails: none
prompt: {system: null, extra: ""}
"""
SMALL = "name: x\nmodel: {provider: scripted, name: reference}\n"


def faults(text: str) -> dict[str, str]:
    """Path to sentence; the line is checked to be one of the text's."""
    with pytest.raises(SpecErrors) as raised:
        parse_spec(text)
    assert all(1 <= fault.line <= max(1, text.count("\n") + 1) and fault.column >= 1 for fault in raised.value.errors)
    return {fault.path: fault.message for fault in raised.value.errors}


def model(more: str) -> str:
    return f"name: x\nmodel:\n  provider: openai\n  name: gpt-4o\n  api_key: secret:K\n  {more}\n"


def test_the_documented_example_is_valid():
    spec = parse_spec(FULL)
    assert (spec.model.provider, spec.model.tool_mode) == (Provider.ANTHROPIC, ToolMode.NATIVE)
    assert spec.context.threshold == 99_840
    assert spec.limits.usd == Decimal(50)


def test_yaml_and_json_of_one_config_have_one_digest():
    spec = parse_spec(FULL)
    again = parse_spec(json.dumps(spec.model_dump(mode="json")))
    assert again == spec
    assert spec_digest(again) == spec_digest(spec)
    assert spec_digest(parse_spec(FULL.replace("usd: 50", "usd: 5.00e1"))) == spec_digest(spec)
    assert spec_digest(parse_spec(FULL.replace("4000", "4001"))) != spec_digest(spec)


def test_a_stored_config_is_read_back_whatever_the_rules_say_today():
    stored = parse_spec(FULL).model_dump(mode="json") | {"tools": ["an_action_of_long_ago"], "guardrails": "warn"}
    assert AgentSpec.model_validate(stored).tools == ("an_action_of_long_ago",)


def test_the_schema_covers_every_key():
    assert set(AgentSpec.json_schema()["properties"]) == set(AgentSpec.model_fields)


def test_configs_are_frozen():
    with pytest.raises(ValidationError):
        parse_spec(SMALL).name = "y"


@pytest.mark.parametrize("key", ["sk-abc", "ANTHROPIC_KEY", "secret:", "secret:a b", "${KEY}", "Secret:K"])
def test_a_literal_key_is_refused_with_the_way_to_do_it_right(key: str):
    found = faults(FULL.replace("secret:ANTHROPIC_KEY", f'"{key}"'))
    assert "api_key: secret:NAME" in found["model.api_key"]
    assert key not in found["model.api_key"].replace("secret:NAME", "")


@pytest.mark.parametrize(
    "where",
    [
        "  name: sk-proj-0123456789abcdef",
        '  extra_body: {h: {k: ["Bearer abcdef0123456789xyz"]}}',
        "  extra_body: {x: {api_key: my-0123456789}}",
        "  extra_body: {Authorization: plain-0123456789}",
        "  extra_body: {password: 0123456789x}",
        "  extra_body: {note: my token is ib_0123456789abcdefgh}",
    ],
)
def test_a_key_in_any_other_place_is_refused_too(where: str):
    text = f"name: x\nmodel:\n  provider: scripted\n{where}\n" + ("  name: r\n" if "extra" in where else "")
    found = faults(text)
    assert any("a key must not stand in a config" in message for message in found.values())
    assert "0123456789" not in str(found)


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("", "", "is empty"),
        ("- a", "", "a list"),
        (SMALL + "modle: 1", "modle", "did you mean `model`?"),
        (model("tempurature: 1"), "model.tempurature", "did you mean `temperature`?"),
        (model("reasoning: {budget: 1}"), "model.reasoning.budget", "no key of model.reasoning"),
        (model("prices: {input: 1}"), "model.prices", "`model.prices.output` is missing"),
        ("name: x", "", "`model` is missing"),
        (SMALL.replace("scripted", "scriptd"), "model.provider", "'anthropic', 'openai' or 'scripted'"),
        (SMALL.replace("name: x", "name: a b"), "name", "letters, digits"),
        (SMALL.replace("name: x", "name: 5"), "name", "must be a text; put it into quotes"),
        (SMALL + 'limits: {steps: "5"}', "limits.steps", "a whole number; write it without quotes"),
        (SMALL + "limits: {steps: true}", "limits.steps", "is true; it must be a whole number"),
        (SMALL + "limits: {hours: .inf}", "limits.hours", "a number"),
        (SMALL + "limits: {usd: 0}", "limits.usd", "more than 0"),
        (SMALL + "limits: [1]", "limits", "a mapping"),
        (SMALL + "feedback: {efficiency: off}", "feedback.efficiency", "true or false"),
        (SMALL + "feedback: {efficiency: true}", "feedback.efficiency", "later release"),
        (SMALL + "guardrails: warn", "guardrails", "later release"),
        (SMALL + "agent: external", "agent", "come with a later release"),
        (SMALL + "prompt: {extra: null}", "prompt.extra", "is null; it must be a text"),
        (SMALL + f"prompt: {{extra: {'x' * 100_001}}}", "prompt.extra", "100000"),
        (model("max_output_tokens: 100"), "model.max_output_tokens", "at least 256"),
        (model("temperature: 3"), "model.temperature", "at most 2"),
        (FULL.replace("temperature: 1.0", "temperature: 1.5"), "model.temperature", "anthropic takes at most 1"),
        (model("extra_body: {messages: []}"), "model.extra_body.messages", "the engine sets"),
        (model("reasoning: {budget_tokens: 2000}"), "model.reasoning.budget_tokens", "use `reasoning.effort`"),
        (model("").replace("  api_key: secret:K\n", ""), "model", "`model.api_key` is missing"),
        (model("").replace("gpt-4o", '"gpt 4o"'), "model.name", "no spaces"),
    ],
)
def test_each_fault_names_the_thing_and_the_next_move(text: str, path: str, words: str):
    found = faults(text)
    assert words in found[path]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://x/v1", "no http or https address"),
        ("https://", "no http or https address"),
        ("x", "no http or https address"),
        ("http://[::1", "no address"),
        ("http://x:99999/v1", "no address"),
        ("https://me:pw@x/v1", "no user name or password"),
        ("https://x/v1?key=1", "without `?` and `#`"),
        ("https://x y/v1", "character that no address has"),
        ("https://x/v1\\r\\nHost: y", "character that no address has"),
        ("http://\u2460\u2461\u2466.0.0.1/v1", "character that no address has"),
        ("http://x\\\\@y/v1", "character that no address has"),
    ],
)
def test_addresses_are_checked(url: str, words: str):
    assert words in faults(model(f'base_url: "{url}"'))["model.base_url"]


def test_the_scripted_model_has_no_address_of_its_own():
    assert "leave `base_url` out" in faults(SMALL.replace("}", ", base_url: 'http://x/v1'}"))["model.base_url"]


@pytest.mark.parametrize(
    ("context", "output", "path"),
    [
        ("{window_tokens: 128000, compact_at_tokens: 120000}", 8192, "context.compact_at_tokens"),
        ("{window_tokens: 8192}", 4096, "model.max_output_tokens"),
    ],
)
def test_a_threshold_below_which_nothing_fits_is_refused(context: str, output: int, path: str):
    found = faults(model(f"max_output_tokens: {output}") + f"context: {context}\n")
    assert "comes too late" in found[path]


def test_a_threshold_just_at_the_room_is_fine():
    text = model("max_output_tokens: 8000") + "context: {window_tokens: 128000, compact_at_tokens: 120000}\n"
    assert parse_spec(text).context.threshold == 120_000


@pytest.mark.parametrize(
    ("name", "more", "limits", "fine"),
    [
        ("gpt-4o", "", "{usd: 5}", True),
        ("house-model", "", "{usd: 5}", False),
        ("house-model", "prices: {input: 1, output: 2}", "{usd: 5}", True),
        ("house-model", "", "{usd: 5, tokens: 1000000}", True),
        ("house-model", "", "{steps: 5}", True),
        ("gpt-4o", "base_url: http://10.0.0.1:8000/v1", "{usd: 5}", False),
    ],
)
def test_a_cost_limit_needs_a_price_or_a_token_limit(name: str, more: str, limits: str, fine: bool):
    """R14"""
    text = model(more).replace("gpt-4o", name) + f"limits: {limits}\n"
    if fine:
        parse_spec(text)
    else:
        assert "unpriced" in faults(text)["limits.usd"]


@pytest.mark.parametrize(
    ("tools", "path", "words"),
    [
        ("innovatorbnch", "tools", "did you mean `innovatorbench`?"),
        ("[]", "tools", "the list is empty"),
        ("5", "tools", "name of a preset or a list"),
        ("[run_command, null]", "tools", "name of a preset or a list"),
        ('["null"]', "tools[0]", "never offered"),
        ("[run_command, run_comand]", "tools[1]", "did you mean `run_command`?"),
        ("[eval, eval]", "tools[1]", "stands twice"),
        ("[parse_pdf]", "tools[0]", "not available in this release"),
        ("[view_hint]", "tools[0]", "only with `hint: on_demand`"),
    ],
)
def test_tools_are_checked_against_the_registry(tools: str, path: str, words: str):
    assert words in faults(SMALL + f"tools: {tools}\n")[path]


def test_the_hint_is_offered_on_demand_only():
    assert "view_hint" not in offered_tools(parse_spec(SMALL))
    assert "view_hint" not in offered_tools(parse_spec(SMALL + "hint: upfront\n"))
    assert "view_hint" in offered_tools(parse_spec(SMALL + "hint: on_demand\n"))
    assert offered_tools(parse_spec(SMALL + "hint: on_demand\ntools: [view_hint, finish]\n")) == ("view_hint", "finish")
    assert "null" not in offered_tools(parse_spec(SMALL))


def test_all_faults_of_a_config_come_at_once_in_order_of_lines():
    text = (
        "name: a b\nagent: external\nmodel:\n  provider: openai\n  name: house\n  api_key: mykey\n  temprature: 1\n"
        "  max_output_tokens: 100000\ntools: [evil]\nlimits: {usd: 1, steps: x}\nguardrails: warn\nfoo: 1\n"
    )
    with pytest.raises(SpecErrors) as raised:
        parse_spec(text)
    assert [fault.line for fault in raised.value.errors] == [1, 2, 6, 7, 8, 9, 10, 10, 11, 12]


def test_yaml_faults_are_spec_errors_too():
    assert "stands twice" in faults("name: x\nname: y\n")["name"]


def test_nul_in_a_text_is_made_storable():
    """T1"""
    assert parse_spec(SMALL + 'prompt: {extra: "a\\0b"}').prompt.extra == "a\u2400b"
