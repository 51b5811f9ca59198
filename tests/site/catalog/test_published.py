"""The 20 published tasks have pages without anybody's data, from this project's data files."""

import pytest
from django.core.management import call_command
from django.http import Http404

from portal.catalog.models import Domain, Task, TaskState
from portal.catalog.published import published_results, published_tasks
from portal.catalog.selectors import task_any, task_get, task_sheet, tasks_by_domain, version_current
from portal.catalog.services import catalog_import_published
from portal.catalog.states import MOVES, TaskStateRefused, task_state_move


@pytest.fixture
def published(catalog: None) -> None:
    catalog_import_published()


def test_twenty_tasks_stand_in_the_papers_domains(published: None):
    shape = [(group.domain.code, len(group.tasks)) for group in tasks_by_domain(suite="innovatorbench")]
    assert shape == [("DC", 4), ("DF", 3), ("DA", 5), ("LD", 3), ("RD", 2), ("SC", 3)]
    assert [task.number for group in tasks_by_domain() for task in group.tasks] == list(range(1, 21))


def test_importing_again_changes_nothing_and_keeps_what_people_did(published: None, dora):
    task_state_move(task=task_get("innovatorbench-07"), to=TaskState.RETIRED, by=dora)
    assert catalog_import_published() == 0
    assert Task.objects.count() == 20
    assert task_get("innovatorbench-07").state == TaskState.RETIRED


def test_two_tasks_are_flagged_as_contaminated(published: None):
    flagged = Task.objects.filter(contaminated=True).values_list("number", flat=True)
    assert sorted(flagged) == [18, 19]
    assert "public elsewhere" in task_get("innovatorbench-18").contamination_note


def test_the_sheet_of_a_published_task_says_what_its_authors_published(published: None):
    sheet = task_sheet(task_get("innovatorbench-06"))
    assert (sheet.hours, sheet.steps, sheet.gpus) == (48, 4000, 16)
    assert [(machine.count, machine.gpus, machine.gpu_memory_gb) for machine in sheet.machines] == [(2, 8, 80)]
    assert (sheet.evaluations_by_agent, sheet.evaluations_final) == (3, 1)
    assert sheet.score is None
    assert version_current(task_get("innovatorbench-06")) is None


def test_the_one_small_gpu_and_the_missing_ones_are_told_apart(published: None):
    assert [task_sheet(task_get(f"innovatorbench-{n}")).gpus for n in (18, 19, 20)] == [0, 0, 1]
    assert task_sheet(task_get("innovatorbench-20")).machines[0].gpu_memory_gb == 24


def test_the_sheet_of_a_brought_version_comes_from_its_manifest(version):
    sheet = task_sheet(task_get("example-task"))
    assert (sheet.hours, sheet.metric, sheet.hint_penalty, sheet.has_hint) == (1, "accuracy", 10, True)
    assert sheet.score.formula == "acc * 100"
    assert sheet.outputs[0].path == "data/outputs/predictions.csv"


def test_published_results_are_exact_decimals_that_add_up_to_the_papers_means():
    results = published_results()
    first = results.entries[0]
    mean = sum(result.final for result in first.results) / len(first.results)
    assert round(mean, 2) == first.published_mean.final
    assert [len(entry.results) for entry in results.entries] == [20, 20, 20, 20, 20, 0]
    assert {task.slug for task in published_tasks().tasks} == {f"innovatorbench-{n:02}" for n in range(1, 21)}


def test_a_draft_is_for_curators_only(version):
    Task.objects.update(state=TaskState.DRAFT)
    with pytest.raises(Http404):
        task_get("example-task")
    assert task_any("example-task") == version.task
    assert tasks_by_domain() == ()


@pytest.mark.parametrize("before", TaskState)
@pytest.mark.parametrize("after", TaskState)
def test_a_task_moves_only_as_the_table_says(version, before: TaskState, after: TaskState):
    task = version.task
    Task.objects.update(state=before)
    task.refresh_from_db()
    if after in MOVES[before]:
        task_state_move(task=task, to=after, by=None)
        assert Task.objects.get().state == after
    else:
        with pytest.raises(TaskStateRefused):
            task_state_move(task=task, to=after, by=None)
        assert Task.objects.get().state == before


def test_a_task_that_somebody_moved_meanwhile_stays_where_it_is(version):
    Task.objects.update(state=TaskState.RETIRED)
    with pytest.raises(TaskStateRefused):
        task_state_move(task=version.task, to=TaskState.RETIRED, by=None)


def test_the_catalog_costs_two_queries_however_many_tasks(published: None, django_assert_num_queries):
    """S10"""
    with django_assert_num_queries(2):
        [task.title for group in tasks_by_domain() for task in group.tasks]


def test_the_command_can_run_again(catalog: None, capsys):
    call_command("catalog_import")
    call_command("catalog_import")
    assert capsys.readouterr().out.splitlines() == [
        "20 tasks added, the others are up to date",
        "0 tasks added, the others are up to date",
    ]
    assert Domain.objects.count() == 6
