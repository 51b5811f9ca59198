"""Room: portal.accounts. Notifications: codes with arguments, written where things happen, read on the account page."""

from collections.abc import Iterable, Mapping

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.accounts.models import Notice, User
from portal.core.errors import Plain

# A code that is not here (an older or newer release wrote it) is shown by its name.
SENTENCES: Mapping[str, object] = {
    "host_key_unknown": _("Node {node} has no trusted host key yet; it offers {fingerprint}. Trust it on its page."),
    "host_key_changed": _(
        "Node {node} offers another host key than the trusted one ({fingerprint}); nothing is sent to it until an "
        "administrator has looked and trusts the new key."
    ),
    "node_lost": _("Node {node} stopped answering; its runs wait for it."),
    "run_ended": _("Run {run} of {task} has ended: {reason}."),
}


def notice_send(*, users: Iterable[User], code: str, facts: Mapping[str, Plain], address: str = "") -> None:
    """One unread notice for each of `users`; `address` is the page it leads to."""
    Notice.objects.bulk_create(
        Notice(user=user, code=code, facts=dict(facts), address=address) for user in users if user.is_active
    )


def notice_send_to_staff(*, code: str, facts: Mapping[str, Plain], address: str = "") -> None:
    """One unread notice for everybody who runs the site."""
    notice_send(users=User.objects.filter(is_staff=True, is_active=True), code=code, facts=facts, address=address)


def notice_sentence(notice: Notice) -> str:
    """The notice in the reader's language."""
    template = SENTENCES.get(notice.code)
    if template is None:
        return notice.code
    return str(template).format_map(_Lenient(notice.facts))


def notices_for(user: User) -> QuerySet[Notice]:
    """All of one's notices, newest first."""
    return user.notices.all()


def notices_unread(user: User) -> int:
    """How many are unread."""
    return user.notices.filter(read_at=None).count()


def notices_mark_read(*, user: User) -> None:
    """All of one's notices are read now."""
    user.notices.filter(read_at=None).update(read_at=timezone.now())


class _Lenient(dict[str, Plain]):
    """A notice of another release may lack an argument; it is still shown."""

    def __missing__(self, key: str) -> str:
        return "?"
