"""Room: portal.api. Addresses below /api/v1/."""

from django.urls import path

from portal.api.views import account, boards, runs, submissions

urlpatterns = [
    path("leaderboards/", boards.BoardList.as_view(), name="api-boards"),
    path("leaderboards/<slug:slug>/", boards.BoardDetail.as_view(), name="api-board"),
    path("leaderboards/<slug:slug>/entries/<int:entry_id>/", boards.EntryDetail.as_view(), name="api-entry"),
    path("tasks/", boards.TaskList.as_view(), name="api-tasks"),
    path("tasks/<slug:slug>/", boards.TaskDetail.as_view(), name="api-task"),
    path("configs/", submissions.ConfigList.as_view(), name="api-configs"),
    path("configs/check/", submissions.ConfigCheck.as_view(), name="api-config-check"),
    path("submissions/", submissions.SubmissionList.as_view(), name="api-submissions"),
    path("submissions/<int:submission_id>/", submissions.SubmissionDetail.as_view(), name="api-submission"),
    path("runs/", runs.RunList.as_view(), name="api-runs"),
    path("runs/<int:run_id>/", runs.RunDetail.as_view(), name="api-run"),
    path("runs/<int:run_id>/events/", runs.RunEvents.as_view(), name="api-run-events"),
    path("runs/<int:run_id>/evaluations/", runs.RunEvaluations.as_view(), name="api-run-evaluations"),
    path("runs/<int:run_id>/cancel/", runs.RunCancel.as_view(), name="api-run-cancel"),
    path("account/", account.Account.as_view(), name="api-account"),
    path("account/tokens/", account.TokenList.as_view(), name="api-tokens"),
    path("account/tokens/<int:token_id>/", account.TokenDetail.as_view(), name="api-token"),
    path("account/secrets/", account.SecretList.as_view(), name="api-secrets"),
    path("account/secrets/<str:name>/", account.SecretDetail.as_view(), name="api-secret"),
    path("nodes/", account.NodeList.as_view(), name="api-nodes"),
]
