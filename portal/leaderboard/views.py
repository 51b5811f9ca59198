"""Room: portal.leaderboard. Doors of the boards: read input, call one selector, shape the answer."""

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import SimpleLazyObject
from django.views.decorators.http import require_safe

from portal.leaderboard.evidence import entry_evidence
from portal.leaderboard.presenters import Query, board_view, csv_lines, kept_s, page_of
from portal.leaderboard.selectors import board_get, boards_list


@require_safe
def leaderboard(request: HttpRequest) -> HttpResponse:
    """The first board."""
    first = boards_list().first()
    if first is None:
        return render(request, "leaderboard/none.html")
    return redirect(first)


@require_safe
def board(request: HttpRequest, slug: str) -> HttpResponse:
    """A board; its state is the query string. What many ask for is kept until the board changes."""
    shown = board_get(slug)
    view = SimpleLazyObject(lambda: board_view(shown, Query.of(request.GET.dict())))
    return render(request, "leaderboard/board.html", {"board": shown, "view": view, "kept_s": kept_s(request.GET)})


@require_safe
def board_csv(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """The board's table with the same filters and order as CSV."""
    page = page_of(board_get(slug), Query.of(request.GET.dict()))
    answer = StreamingHttpResponse(csv_lines(page), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}.csv"'
    return answer


@require_safe
def entry(request: HttpRequest, slug: str, entry_id: int) -> HttpResponse:
    """The evidence page: why a row can be trusted."""
    evidence = entry_evidence(slug, entry_id)
    page, row = evidence.page, evidence.row
    cells = [(column, row.cells.get(column.slug)) for column in page.columns]
    shown = {"page": page, "row": row, "cells": cells, "evidence": evidence}
    return render(request, "leaderboard/entry.html", shown)
