"""The interface speaks Simplified Chinese: every string of the code is in the catalogue, translated, and shown."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import pytest
from babel.messages.catalog import Message
from babel.messages.extract import extract_python
from babel.messages.pofile import read_po
from django.urls import reverse
from django.utils.translation import override
from django.utils.translation.template import templatize

from evaluator.manifest import Manifest
from gymnode.actions.registry import ACTIONS
from gymnode.observations import Outcome
from portal.core import words
from portal.leaderboard.boards import boards_ensure
from portal.pages.schema import schema_rows
from runs.agent.events import Kind
from runs.agent.spec import AgentSpec

ROOT = Path(__file__).resolve().parents[3]
CATALOGUE = ROOT / "portal/locale/zh_Hans/LC_MESSAGES/django.po"
MARKS = ("_", "gettext", "gettext_lazy", "gettext_noop", "ngettext", "ngettext_lazy")
PLACEHOLDER = re.compile(r"%\(\w+\)s|\{\w*\}|%%|<[^>]+>")
SENTENCE = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
HAN = re.compile(r"[\u4e00-\u9fff]")
CODE = ("code", "pre", "textarea", "script", "style")
CODE_CLASSES = {("class", "editor"), ("class", "read"), ("lang", "en")}
NAMES = {"reference", "scripted"}  # a model and a provider of the world of these tests
SPOKEN = {"aria-label", "title", "placeholder", "alt"}
PAGES = ["home", "leaderboard", "tasks", "agents", "runs", "nodes", "docs", "account", "submit", "submissions"]


def texts(said: object) -> tuple[str, ...]:
    return tuple(said) if isinstance(said, tuple | list) else (str(said or ""),)


@pytest.fixture(scope="module")
def catalogue() -> dict[str, Message]:
    with CATALOGUE.open("rb") as file:
        return {texts(message.id)[0]: message for message in read_po(file, locale="zh_Hans") if message.id}


def marked() -> Iterator[tuple[Path, str]]:
    """Every string that is marked for translation, in Python and in templates."""
    for root, ending in (("portal", "py"), ("runs", "py"), ("templates", "html")):
        for path in (ROOT / root).rglob(f"*.{ending}"):
            code = path.read_text("utf-8") if ending == "py" else templatize(path.read_text("utf-8"))
            for _line, _mark, found, _said in extract_python(BytesIO(code.encode()), MARKS, (), {"encoding": "utf-8"}):
                if texts(found)[0]:
                    yield path, str(texts(found)[0])


def test_no_string_of_the_code_is_missing_from_the_catalogue(catalogue):
    missing = sorted({f"{path.relative_to(ROOT)}: {text}" for path, text in marked() if text not in catalogue})
    assert not missing, "`make words`, then translate"


@pytest.mark.parametrize("path", sorted((ROOT / "templates").rglob("*.html")), ids=lambda path: path.name)
def test_no_template_speaks_without_a_mark(path):
    html = re.sub(r"{#.*?#}|{% blocktrans.*?{% endblocktrans\w* %}", "", path.read_text("utf-8"), flags=re.DOTALL)
    shown = Shown(re.sub(r"{%.*?%}|{{.*?}}", "·", html, flags=re.DOTALL))
    assert [text for text in shown.said if SENTENCE.search(text)] == []


def test_every_string_is_translated_with_its_placeholders(catalogue):
    assert len(catalogue) > 700
    for message in catalogue.values():
        said = texts(message.string)
        assert not message.fuzzy, message.id
        assert len(said) == 1, message.id
        assert said[0].strip(), message.id
        wanted = sorted(PLACEHOLDER.findall(str(texts(message.id)[-1])))
        assert sorted(PLACEHOLDER.findall(said[0])) == wanted, message.id


def test_words_of_rooms_without_a_language_are_in_the_catalogue(catalogue):
    fields = [*schema_rows(AgentSpec.json_schema()), *schema_rows(Manifest.model_json_schema(by_alias=True))]
    spoken = [
        *(kind.value.replace("_", " ") for kind in Kind),
        *(outcome.value for outcome in Outcome),
        *(action.family.value for action in ACTIONS.values()),
        *(field.about for field in fields if field.about),
    ]
    assert [text for text in spoken if text not in catalogue] == []


def test_stored_words_are_told_in_the_reader_s_language():
    assert words.code_told("node_lost") == "node lost"
    assert words.unit_told("1.5 h") == "1.5 h"
    with override("zh-hans"):
        assert words.code_told("node_lost") == "节点失联"
        assert words.unit_told("45 min") == "45 分钟"
        assert words.notes_told("assisted run; altered limits") == "有人协助的运行; 改过限制"
        assert words.told("a title of somebody's own") == "a title of somebody's own"
        assert words.slug_told("data-filtering") == "数据过滤"
        assert words.told(None) == ""


class Shown(HTMLParser):
    """What a page says: its texts and the attributes that are read aloud. Code and English by name are left out."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.said: set[str] = set()
        self.headings: list[str] = []
        self._skipped: list[str] = []
        self._tag = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        self.said |= {str(value).strip() for name, value in attrs if name in SPOKEN}
        if self._skipped or tag in CODE or not CODE_CLASSES.isdisjoint(attrs):
            self._skipped += [tag] * (not self._skipped or tag == self._skipped[0])

    def handle_endtag(self, tag: str) -> None:
        if self._skipped and tag == self._skipped[0]:
            self._skipped.pop()

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if not self._skipped:
            self.said.add(text)
        if text and self._tag in ("h1", "h2"):
            self.headings.append(text)


def english_left(shown: Shown, catalogue: dict[str, Message]) -> list[str]:
    known = {text for text, message in catalogue.items() if texts(message.string)[0] != text}
    return sorted((shown.said & known) - NAMES)


@pytest.mark.parametrize("name", PAGES)
def test_main_pages_show_no_english_where_chinese_is_asked_for(client, alice, run, catalogue, name):
    boards_ensure()
    client.force_login(alice)
    client.post(reverse("set_language"), {"language": "zh-hans"})
    shown = Shown(client.get(reverse(name), follow=True).content.decode())
    assert any(HAN.search(heading) for heading in shown.headings), shown.headings
    assert english_left(shown, catalogue) == []


def test_pages_of_a_run_and_its_task_show_no_english(client, alice, run, catalogue):
    client.force_login(alice)
    for address in (run.get_absolute_url(), run.task_version.task.get_absolute_url(), run.config.get_absolute_url()):
        html = client.get(address, headers={"accept-language": "zh-hans"}).content.decode()
        assert english_left(Shown(html), catalogue) == [], address
