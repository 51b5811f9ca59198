"""Room: portal.catalog. Doors of the catalog: the public part of a task as a download."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from portal.catalog.selectors import task_get, versions_of
from portal.core.blobs import blobs


@require_safe
def workspace(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The public part of a version as a tar: all that an agent is given, nothing else."""
    version = versions_of(task_get(slug)).filter(number=number).first()
    if version is None:
        raise Http404
    answer = HttpResponse(blobs().get(version.public_blob), content_type="application/x-tar")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-v{number}.tar"'
    return answer
