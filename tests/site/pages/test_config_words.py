"""Faults of a config are told in the reader's language: each sentence that a config can cause stands in the list."""

import re

import pytest
from django.urls import reverse
from django.utils.translation import override

from portal.pages.config_words import MOST_CHARS, fault_told
from runs.agent.spec import SpecErrors, parse_spec

SMALL = "name: x\nmodel: {provider: scripted, name: r}\n"
FREE = "name: x\nmodel: {provider: openai, name: %s, api_key: 'secret:K'%s}\n"
ENGLISH = re.compile(r"[a-z]{2,} [a-z]{2,}")
SHAPES = [
    "",
    "- a",
    "5",
    "a: &x 1\nb: *x",
    "a: 1\na: 2",
    "a: !!y 1",
    "a: 1\n---\nb: 2",
    "? [1]\n: 2",
    "a: \a",
    "[" * 50,
]
SHAPES += ["a: " + "9" * 100, 'a: "\\UFFFFFFFF"', "x" * 1_000_001]
VALUES = ["limits: {steps: '5'}", "limits: {usd: 0}", "limits: {steps: 0}", "limits: {steps: 10000000}", "limits: [1]"]
VALUES += [
    "limits: {hours: .inf}",
    "limits: {hours: x}",
    "feedback: {efficiency: off}",
    "modle: 1",
    "zzz: 1",
    "name2: 1",
]
VALUES += ["prompt: {extra: null}", f"prompt: {{extra: {'x' * 100_001}}}", "hint: often", "snapshot: {evry: 1}"]
RULES = ["agent: external", "guardrails: warn", "feedback: {efficiency: true}", "tools: innovatorbnch", "tools: zzz"]
RULES += [
    "tools: []",
    "tools: 5",
    'tools: ["null"]',
    "tools: [run_comand]",
    "tools: [eval, eval]",
    "tools: [parse_pdf]",
]
RULES += ["tools: [view_hint]", "tools: [zzzzz]", "context: {window_tokens: 4096}"]
MODELS = [("m", ", base_url: 'ftp://x'"), ("m", ", base_url: 'http://[::1'"), ("m", ", base_url: 'https://a:b@x/'")]
MODELS += [("m", ", base_url: 'https://x/?a'"), ("m", ", base_url: 'https://x y/'"), ("m", ", extra_body: {tools: 1}")]
MODELS += [("'a b'", ""), ("''", ""), ("m", ", reasoning: {budget_tokens: 2000}"), ("m", ", temperature: 3")]
MODELS += [("m", "}\nlimits: {usd: 5"), ("m", ", extra_body: {password: '0123456789'}"), ("m", ", prices: {input: 1}")]
WHOLE = ["model: {provider: scripted, name: r}", "name: a b\nmodel: {provider: scripted, name: r}", "name: 5\nmodel: 1"]
WHOLE += [
    "name: x\nmodel: {provider: openai, name: m}",
    "name: x\nmodel: {provider: scripted, name: r, base_url: 'http://x'}",
]
WHOLE += ["name: x\nmodel: {provider: anthropic, name: m, api_key: 'secret:K', temperature: 1.5}"]
TEXTS = [*SHAPES, *(SMALL + more for more in (*VALUES, *RULES)), *(FREE % each for each in MODELS), *WHOLE]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_fault_is_told_in_chinese(text):
    with pytest.raises(SpecErrors) as raised:
        parse_spec(text)
    for fault in raised.value.errors:
        assert fault_told(fault.message) == fault.message
        with override("zh-hans"):
            told = fault_told(fault.message)
        plain = re.sub(r"`[^`]*`|“.*”|已知：.*", "", told)
        assert plain != fault.message
        assert not ENGLISH.search(plain), told


def test_what_is_not_known_stays_as_it_is_and_a_name_stays_a_name():
    with override("zh-hans"):
        assert fault_told("nobody's sentence") == "nobody's sentence"
        assert fault_told("`" + "a" * MOST_CHARS + "` is missing; add it").endswith("is missing; add it")
        assert fault_told("`{a}` is missing; add it") == "缺少 `{a}`；请添加"
        assert fault_told('`a` is the text "a number"; it must be a list') == "`a` 是 文本“a number”；必须是列表"
        assert fault_told("not valid YAML: mapping values are not allowed here").startswith("不是有效的 YAML：")


def test_the_submit_page_tells_faults_in_chinese(client, alice, version):
    client.force_login(alice)
    client.post(reverse("set_language"), {"language": "zh-hans"})
    words = {"config": "name: x", "tasks": ["example-task"], "repeats": 1, "team": "alice", "where": "private"}
    html = client.post(reverse("submit"), words).content.decode()
    assert "缺少 <code>model</code>；请添加" in html
