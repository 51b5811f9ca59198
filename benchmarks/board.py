"""A board of 10,000 rows x 20 tasks, in-process: a page of 100 with nothing cached, and its queries at two sizes."""

import statistics
import time
from collections.abc import Callable

from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from benchmarks.database import database
from benchmarks.report import Bound, Report, Target
from portal.catalog.services import catalog_import_published
from portal.leaderboard.boards import boards_ensure
from portal.leaderboard.models import Board
from portal.leaderboard.presenters import Query, board_view

ROWS, FEW, ROUNDS = 10_000, 100, 25
TARGETS = {
    "read_p50_ms": Target(Bound.AT_MOST, 40.0),
    "page_kept_p50_ms": Target(Bound.AT_MOST, 4.0),
    "queries": Target(Bound.AT_MOST, 6),
    "more_queries_than_at_100": Target(Bound.AT_MOST, 0),
}
_ENTRIES = """
INSERT INTO leaderboard_leaderboardentry (board_id, key, engine_version, agent, model, source, tier, ranked, note,
  badges, mean_final, mean_best, done_final, half_width, tasks_done, n_runs, usd, hours, tokens, scored_at, updated_at)
SELECT %(board)s, 'b' || n, '1', 'agent ' || n %% 40, 'model ' || n, '', 'scored_here', true, '', '[]',
  n * 7919 %% 9000 / 100.0, n * 7919 %% 9000 / 90.0, n * 7919 %% 9000 / 100.0, 2 + n %% 5, 20, 60, n %% 300 / 7.0,
  n %% 24 + 0.5, n * 1000, now() - n * interval '1 minute', now()
FROM generate_series(%(first)s, %(last)s) n"""
_CELLS = """
INSERT INTO leaderboard_entrycell (entry_id, task_id, final, best, n, spread, usd, hours, runs)
SELECT e.id, t.task_id, e.id * (t.position + 3) %% 80 + 0.125, 90, 3, 1.5, 2.25, 1.5, '[1, 2, 3]'
FROM leaderboard_leaderboardentry e JOIN leaderboard_boardtask t ON t.board_id = e.board_id
WHERE e.board_id = %(board)s AND NOT EXISTS (SELECT FROM leaderboard_entrycell c WHERE c.entry_id = e.id)"""


def measure() -> Report:
    """Every figure of this file. `read`: rows, ranks and charts of the page, `cpu` of it this process's own, without
    the database and whoever else uses the machine; `page`: the whole answer, made anew or kept since the last change.
    """
    with database():
        catalog_import_published()
        boards_ensure()
        board = Board.objects.get(slug="innovatorbench-20")
        address, client = board.get_absolute_url(), Client()  # a new client reads all static files anew
        _fill(board, 1, FEW)
        few = _queries(address)
        _fill(board, FEW + 1, ROWS)
        figures = {
            "read_p50_ms": _median_ms(lambda: board_view(board, Query())),
            "read_cpu_p50_ms": _median_ms(lambda: board_view(board, Query()), time.process_time),
            "read_page_50_p50_ms": _median_ms(lambda: board_view(board, Query(number=50))),
            "read_by_cost_p50_ms": _median_ms(lambda: board_view(board, Query("cost", descending=True))),
            "read_by_domain_p50_ms": _median_ms(lambda: board_view(board, Query("domain:loss-design"))),
            "read_search_p50_ms": _median_ms(lambda: board_view(board, Query(search="model 77"))),
            "page_made_p50_ms": _median_ms(lambda: client.get(address), before=cache.clear),
            "page_kept_p50_ms": _median_ms(lambda: client.get(address)),
            "queries": _queries(address),
        }
    return Report("board", {**figures, "more_queries_than_at_100": figures["queries"] - few}, TARGETS)


def _fill(board: Board, first: int, last: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_ENTRIES, {"board": board.pk, "first": first, "last": last})
        cursor.execute(_CELLS, {"board": board.pk})
        cursor.execute("ANALYZE")


def _queries(address: str) -> int:
    Client().get(address)
    cache.clear()
    with CaptureQueriesContext(connection) as seen:
        answer = Client().get(address)
    assert answer.status_code == 200, answer.status_code
    return len(seen)


def _median_ms(
    call: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
    before: Callable[[], object] = lambda: None,
) -> float:
    times = []
    for _round in range(ROUNDS):
        before()
        began = clock()
        call()
        times.append(1000 * (clock() - began))
    return statistics.median(times)
