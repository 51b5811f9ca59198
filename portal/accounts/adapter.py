"""Room: portal.accounts. What allauth asks this site about: here, how a mail is sent."""

import logging
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.utils.translation import gettext_lazy as _

from portal.core.errors import Unavailable

log = logging.getLogger(__name__)


class MailAway(Unavailable):
    """The mail server can't be reached or refuses; nothing was sent."""

    code = "mail_away"
    template = _("The mail could not be sent: the mail server does not answer. Try again in some minutes.")


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth is untyped
    """allauth's own, whose mails fail with a sentence."""

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send one of allauth's mails. Raises MailAway."""
        try:
            super().send_mail(template_prefix, email, context)
        except OSError as error:  # every fault of smtplib is one
            log.error("a mail could not be sent (%s): is MAIL_URL right?", type(error).__name__)
            raise MailAway from error
