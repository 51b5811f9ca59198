"""Room: portal.api. Shapes of answers about runs, submissions and one's account, for the OpenAPI description."""

from rest_framework import serializers

from portal.api.answers import BoardRowAnswer, FaultLine, Shape


class ConfigName(Shape):
    """Which agent config."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    version = serializers.IntegerField()


class ConfigLine(ConfigName):
    """An agent config in a list."""

    digest = serializers.CharField()
    team = serializers.CharField()
    url = serializers.CharField()


class ConfigsAnswer(Shape):
    """Configs one may read; `next` is the `before` of the following page."""

    configs = ConfigLine(many=True)
    next = serializers.IntegerField(allow_null=True)


class ConfigSummary(Shape):
    """What a sound config is."""

    name = serializers.CharField()
    digest = serializers.CharField()
    model = serializers.CharField()
    provider = serializers.CharField()
    hint = serializers.CharField()


class ConfigCheckAnswer(Shape):
    """Every fault of a config with its line, or what it is."""

    valid = serializers.BooleanField()
    errors = FaultLine(many=True)  # type: ignore[assignment]  # the metaclass takes fields off the class
    summary = ConfigSummary(allow_null=True)


class RunAnswer(Shape):
    """A run. Seconds are working time; `usd` is null where a call had no known price."""

    id = serializers.IntegerField()
    task = serializers.SlugField()
    task_version = serializers.IntegerField()
    config = ConfigName()
    team = serializers.CharField()
    board = serializers.CharField(allow_null=True)
    visibility = serializers.CharField()
    status = serializers.CharField()
    status_text = serializers.CharField()
    reason = serializers.CharField()
    waiting_reason = serializers.CharField(allow_null=True)
    end_reason = serializers.CharField(allow_null=True)
    failure = serializers.CharField(allow_null=True)
    steps = serializers.IntegerField()
    limit_steps = serializers.IntegerField()
    evaluations_used = serializers.IntegerField()
    evaluations_total = serializers.IntegerField()
    elapsed_s = serializers.FloatField()
    limit_s = serializers.FloatField()
    score = serializers.CharField(allow_null=True)
    score_exact = serializers.CharField(allow_null=True)
    best = serializers.CharField(allow_null=True)
    best_exact = serializers.CharField(allow_null=True)
    usd = serializers.CharField(allow_null=True)
    tokens = serializers.IntegerField()
    model_returned = serializers.CharField(allow_null=True)
    isolation_level = serializers.CharField(allow_null=True)
    engine_version = serializers.CharField()
    assisted = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    url = serializers.CharField()


class RunsAnswer(Shape):
    """Runs one may read, newest first; `next` is the `before` of the following page."""

    runs = RunAnswer(many=True)
    next = serializers.IntegerField(allow_null=True)


class EventAnswer(Shape):
    """One event. `seq` is gap-free from 1; `cut`: long texts are shortened here, the step's page has them whole."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.CharField()
    step = serializers.IntegerField()
    body = serializers.DictField()
    cut = serializers.BooleanField()


class EventsAnswer(Shape):
    """Events in order; `last` is the `after` of the next page, null when there is nothing newer."""

    events = EventAnswer(many=True)
    last = serializers.IntegerField(allow_null=True)


class EvaluationAnswer(Shape):
    """One scoring; metrics raw as the evaluator signed them."""

    ordinal = serializers.IntegerField()
    by = serializers.CharField()
    state = serializers.CharField()
    valid = serializers.BooleanField(allow_null=True)
    message = serializers.CharField()
    metrics = serializers.DictField()
    score = serializers.CharField(allow_null=True)
    score_exact = serializers.CharField(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    sandbox_level = serializers.IntegerField(allow_null=True)
    bundle_sha256 = serializers.CharField()
    requested_at = serializers.DateTimeField()
    scored_at = serializers.DateTimeField(allow_null=True)


class EvaluationsAnswer(Shape):
    """All scorings of a run."""

    evaluations = EvaluationAnswer(many=True)


class SubmissionRun(Shape):
    """One run of a submission, by task, repeat and attempt."""

    id = serializers.IntegerField()
    task = serializers.SlugField()
    repeat = serializers.IntegerField()
    attempt = serializers.IntegerField()
    status = serializers.CharField()
    score = serializers.CharField(allow_null=True)
    url = serializers.CharField()


class SubmissionAnswer(Shape):
    """A submission with its runs."""

    id = serializers.IntegerField()
    url = serializers.CharField()
    team = serializers.CharField()
    config = ConfigName()
    board = serializers.CharField(allow_null=True)
    visibility = serializers.CharField()
    repeats = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    runs = SubmissionRun(many=True)


class SubmissionsAnswer(Shape):
    """Submissions of one's teams, newest first; `next` is the `before` of the following page."""

    submissions = SubmissionAnswer(many=True)
    next = serializers.IntegerField(allow_null=True)


class EntryAnswer(Shape):
    """Why a row can be trusted. `runs` are all of that team on that board, `mine` those of this row."""

    board = serializers.SlugField()
    row = BoardRowAnswer()
    config_digest = serializers.CharField()
    config_version = serializers.IntegerField(allow_null=True)
    model_asked = serializers.CharField()
    model_host = serializers.CharField()
    models_returned = serializers.ListField(child=serializers.CharField())
    frozen = serializers.ListField(child=serializers.DictField())
    repeats = serializers.ListField(child=serializers.DictField())
    runs = serializers.ListField(child=serializers.DictField())
    interventions = serializers.ListField(child=serializers.DictField())
    shared_os_user = serializers.BooleanField()


class TeamName(Shape):
    """Which team."""

    slug = serializers.SlugField()
    name = serializers.CharField()


class QuotaAnswer(Shape):
    """Runs left of the personal team's quota, in any 24 hours."""

    limit = serializers.IntegerField()
    left = serializers.IntegerField()
    next_at = serializers.DateTimeField(allow_null=True)


class AccountAnswer(Shape):
    """Who is asking."""

    username = serializers.CharField()
    teams = TeamName(many=True)
    quota = QuotaAnswer()


class TokenLine(Shape):
    """An API token; its value is never shown again."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)


class TokensAnswer(Shape):
    """Living and expired tokens."""

    tokens = TokenLine(many=True)


class TokenMade(Shape):
    """A new token at the only moment its value exists."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    expires_at = serializers.DateTimeField(allow_null=True)
    value = serializers.CharField()


class SecretLine(Shape):
    """What may be shown of a secret: never its value."""

    name = serializers.CharField()
    host = serializers.CharField()
    last_used_at = serializers.DateTimeField(allow_null=True)


class SecretsAnswer(Shape):
    """The vault's names."""

    secrets = SecretLine(many=True)


class NodeLine(Shape):
    """A machine: never an address or a key."""

    name = serializers.CharField()
    state = serializers.CharField()
    gpus = serializers.IntegerField()
    cpus = serializers.IntegerField()
    level = serializers.CharField(allow_null=True)


class NodesAnswer(Shape):
    """Machines one may see."""

    nodes = NodeLine(many=True)
