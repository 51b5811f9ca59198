"""Terminal bytes from the node to whoever reads them: keys masked, nothing lost without a word."""

from collections.abc import Callable, Iterator

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from gymnode.actions.command import RunCommand
from gymnode.transport.base import NodeLink
from portal.accounts.vault import secret_put
from portal.core.secrets import Secret
from portal.nodes.sinks import Quiet, TerminalBytes
from portal.nodes.watching import Flow, NodeWatcher, Timing
from runs.environment import Environment, Opening, Place
from runs.models.log import TerminalChunk
from runs.models.run import Run
from runs.services.terminals import terminal_store, terminals_pull
from runs.services.watching import terminal_paused, terminal_stored, terminal_took
from runs.states import Visibility
from runs.terminal_log import MOST_SESSIONS, session_tail, terminal_after, terminal_gaps, terminal_text
from tests.site.runs.driving import CONFIG

KEY = "PlainKey0123456789abcdefXYZ"
MODEL = "{provider: openai, name: m, base_url: 'https://models.example.org/v1', api_key: 'secret:MY_KEY', "
KEYED = CONFIG.replace("{provider: scripted, name: reference}", MODEL + "prices: {input: 1, output: 1}}")


@pytest.fixture
def keyed(team, alice, queue) -> Run:
    """A public run whose config names a key of the vault."""
    secret_put(team=team, name="MY_KEY", value=Secret(KEY), host="models.example.org", by=alice)
    return queue(KEYED, visibility=Visibility.PUBLIC)


@pytest.fixture
def shown(queue) -> Run:
    return queue(visibility=Visibility.PUBLIC)


def took(run: Run, offset: int, data: bytes) -> None:
    terminal_took(TerminalBytes(run.key, 1, "main", offset, data, timezone.now()))


def stored(run: Run, offset: int, data: bytes, session: str = "main") -> None:
    terminal_store(run_id=run.pk, session=session, offset=offset, data=data, at=timezone.now())


def read(client, run: Run, **query: str) -> bytes:
    answer = client.get(f"/runs/{run.pk}/terminal/", {"session": "main", **query})
    assert answer.status_code == 200
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


@pytest.mark.parametrize("cut", [1, 10, 26])
def test_a_key_in_the_output_is_read_by_nobody(keyed: Run, client, cut: int) -> None:
    """A2: neither on the pages nor in the raw bytes, however the node hands it on."""
    took(keyed, 0, f"$ {KEY[:cut]}".encode())
    terminal_paused(Quiet(keyed.key, "main", timezone.now()))
    took(keyed, 2 + cut, f"{KEY[cut:]}\r\n".encode())
    raw = read(client, keyed, raw="1")
    assert (len(raw), raw.count(b"*") >= len(KEY) - 3, raw[-2:]) == (len(KEY) + 4, True, b"\r\n")
    for page in (raw, read(client, keyed), client.get(keyed.get_absolute_url()).content):
        assert KEY[3:].encode() not in page
        assert b"********" in page


def test_what_may_begin_a_key_waits_for_a_moment_only(keyed: Run) -> None:
    """A2: a prompt that ends like the beginning of a key is seen."""
    took(keyed, 0, b"$ P")
    assert terminal_stored(keyed.key, "main") == 2
    terminal_paused(Quiet(keyed.key, "main", timezone.now()))
    assert terminal_stored(keyed.key, "main") == 3


def test_a_key_that_was_replaced_stays_masked_beside_the_new_one(keyed: Run, team, alice, client) -> None:
    """A2"""
    took(keyed, 0, b"one\r\n")
    secret_put(team=team, name="MY_KEY", value=Secret("another-key-9876"), host="models.example.org", by=alice)
    took(keyed, 5, f"{KEY} another-key-9876\r\n".encode())
    raw = read(client, keyed, raw="1")
    assert raw == b"one\r\n" + b"*" * len(KEY) + b" " + b"*" * 16 + b"\r\n"


def test_bytes_are_stored_by_nobody_who_can_not_mask_them(keyed: Run, settings) -> None:
    """A2"""
    settings.VAULT_IDENTITY_PATH = None
    took(keyed, 0, KEY.encode())
    assert not TerminalChunk.objects.exists()


def test_a_stretch_that_is_not_stored_is_told_wherever_the_log_is_read(shown: Run, client) -> None:
    """T6: no two ends are taken for neighbours."""
    stored(shown, 0, b"head\r\n")
    stored(shown, 5_000_000, b"tail\r\n")
    assert terminal_gaps(shown.pk, "main", 5_000_006) == [(6, 5_000_000)]
    for page in (read(client, shown), client.get(shown.get_absolute_url()).content):
        assert "head\n\n[… 4999994 bytes left out …]\ntail\n" in page.decode()
    answer = client.get(f"/runs/{shown.pk}/terminal/", {"session": "main", "raw": "1"})
    assert answer["X-Bytes-Missing"] == "4999994"
    assert b"".join(answer.streaming_content) == b"head\r\n\n[... 4999994 bytes left out ...]\ntail\r\n"


def test_a_whole_log_says_that_nothing_is_missing(shown: Run, client) -> None:
    """N1"""
    for offset, data in ((0, b"abcdef"), (2, b"cd"), (4, b"efgh"), (8, b"i")):
        stored(shown, offset, data)
    answer = client.get(f"/runs/{shown.pk}/terminal/", {"session": "main", "raw": "1"})
    assert (answer["X-Bytes-Missing"], b"".join(answer.streaming_content)) == ("0", b"abcdefghi")
    assert [chunk.offset for chunk in terminal_after(shown.pk, "main", 5)] == [4, 8]


async def test_a_long_log_is_handed_out_piece_by_piece(queue, async_client) -> None:
    """T6: the site never holds the whole of it."""
    run = await sync_to_async(queue)(visibility=Visibility.PUBLIC)
    for number in range(3):
        await sync_to_async(stored)(run, number * 100_000, b"%d" % number * 100_000)
    answer = await async_client.get(f"/runs/{run.pk}/terminal/?session=main&raw=1")
    assert [len(part) async for part in answer.streaming_content] == [100_000] * 3


def test_earlier_pages_pass_over_what_is_missing(shown: Run) -> None:
    """T6: each page holds a page's worth of bytes, each stretch is told once."""
    stored(shown, 0, b"a" * 70_000)
    stored(shown, 9_000_000, b"b" * 40_000)
    pages = [terminal_text(shown, session_tail(shown, "main", None))]
    while pages[-1].start:
        pages.append(terminal_text(shown, session_tail(shown, "main", pages[-1].start)))
    text = "".join(page.text for page in reversed(pages))
    assert [(page.start, page.end) for page in pages] == [(44_464, 9_040_000), (0, 44_464)]
    assert (text.count("a"), text.count("b"), text.count("[… 8930000 bytes left out …]")) == (70_000, 40_000 + 1, 1)


def test_only_the_first_and_the_newest_bytes_of_a_session_without_end_are_kept(shown: Run, monkeypatch) -> None:
    """T6: and the rest is told."""
    monkeypatch.setattr("runs.services.terminals.SESSION_BYTES", 2_000_000)
    for number in range(40):
        stored(shown, number * 200_000, b"%d" % (number % 10) * 200_000)
    sizes = [len(chunk) for chunk in TerminalChunk.objects.order_by("offset").values_list("data", flat=True)]
    assert 2_000_000 <= sum(sizes) <= 3_000_000
    [(low, high)] = terminal_gaps(shown.pk, "main", 8_000_000)
    assert (low, high <= 7_000_000) == (1_000_000, True)


@pytest.fixture
def on_node(gymd: NodeLink) -> Iterator[Callable[[Run, str], Environment]]:
    """The run on a node of its own, where this command has ended."""
    opened = list[Environment]()

    def make(run: Run, command: str) -> Environment:
        place = Place("box", "main", gymd)
        environment = Environment(run.key, 1, [place], lambda: 0)
        environment.open(Opening("none", 1))
        opened.append(environment)
        action = RunCommand(command=command, timeout_s=60)
        action.perform(environment.bench(f"{run.key}.1.0", resend=False, cursor=None))
        return environment

    yield make
    for environment in opened:
        environment.close(remove=True)


def test_what_the_collector_left_out_is_fetched_before_the_files_go(shown: Run, node, gymd, on_node, client) -> None:
    """N1: 3 MB on stdout and on stderr at once, then on one line; the raw bytes are all that was printed."""
    flood = "head -c 3000000 /dev/zero | tr '\\0' {}"
    both = f"({flood.format('o')} & {flood.format('e')} >&2; wait); {flood.format('l')}; echo; echo end"
    environment = on_node(shown, both)
    flow = Flow(burst=100_000, per_s=1)
    NodeWatcher(node.pk, lambda _node: gymd, timing=Timing(poll=0), flow=flow).turn()
    assert terminal_gaps(shown.pk, "main", 9_000_007) != []
    terminals_pull(environment, shown.pk)
    assert terminal_gaps(shown.pk, "main", 9_000_007) == []
    raw = read(client, shown, raw="1")
    assert [raw.count(letter) for letter in (b"o", b"l")] == [3_000_000] * 2
    assert (len(raw), raw[-7:]) == (9_000_007, b"\r\nend\r\n")


def test_more_than_is_kept_is_fetched_as_its_two_ends(shown: Run, on_node, monkeypatch) -> None:
    """T6"""
    monkeypatch.setattr("runs.services.terminals.SESSION_BYTES", 1_000_000)
    environment = on_node(shown, "head -c 3000000 /dev/zero | tr '\\0' x")
    terminals_pull(environment, shown.pk)
    assert terminal_gaps(shown.pk, "main", 3_000_000) == [(500_000, 2_500_000)]


@pytest.mark.parametrize("stored_before", [b"", b"$ ", b"$ Plai"])
def test_a_key_is_masked_in_what_is_fetched_at_the_end(keyed: Run, on_node, client, stored_before: bytes) -> None:
    """A2: also where the missing stretch begins or ends within it."""
    environment = on_node(keyed, f"A={KEY[:9]}; B={KEY[9:]}; printf '$ %s' $A$B; echo; echo end")
    stored(keyed, 0, stored_before)
    stored(keyed, 20, b"*" * 9)
    terminals_pull(environment, keyed.pk)
    raw = read(client, keyed, raw="1")
    assert raw.replace(b"Plai", b"****") == b"$ " + b"*" * len(KEY) + b"\r\nend\r\n"
    assert KEY[:5].encode() not in raw


def test_an_agent_with_many_sessions_hides_none_of_them(shown: Run, client) -> None:
    """`main` stands first whatever the others are called; what isn't listed is found by its name."""
    for number in range(MOST_SESSIONS + 5):
        stored(shown, 0, b"of %d" % number, session=f"job-{number:02}")
    stored(shown, 0, b"the main log")
    page = client.get(f"/runs/{shown.pk}/").content.decode()
    assert page.index('value="main"') < page.index('value="job-00"')
    assert "the main log" in page
    assert "These are the first by name." in page
    last = f"job-{MOST_SESSIONS + 4}"
    assert f'value="{last}"' not in page
    assert client.get(f"/runs/{shown.pk}/terminal/", {"session": last, "raw": "1"}).status_code == 200
    for unknown in ("none", "\0", "main\0", "x" * 9_000):
        assert client.get(f"/runs/{shown.pk}/terminal/", {"session": unknown}).status_code == 404
