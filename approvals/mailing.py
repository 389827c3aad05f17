"""Mails by SMTP, and what comes back in replies to them."""

import smtplib
from email.utils import parseaddr
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.smtp import EmailBackend
from django.utils.translation import gettext as _

SECONDS: Final = 20
# Of what stands between two dots of a host's name.
_LONGEST_LABEL: Final = 63
# Above it a reply is what the person wrote, below it what we did.
MARKER: Final = "-- Write your reply above this line --"


class MailError(Exception):
    """A mail was not taken; the message says why, without its words or the password."""


def send_mail(
    address: str, *, subject: str, text: str, message_id: str, takes_replies: bool
) -> None:
    """Send one mail; `message_id` stays the same over attempts.

    Raises MailError with a sentence.
    """
    if not settings.EMAIL_HOST:
        raise MailError(_("No mail server is set up (EMAIL_HOST)."))
    if not is_address(address):
        raise MailError(_("The contact's address is none of e-mail."))
    reply_to = reply_address(message_id) if takes_replies else ""
    mail = EmailMessage(
        subject=f"[Strata Portal] {subject}",
        body=f"{MARKER}\n\n{text}\n" if reply_to else f"{text}\n",
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[address],
        reply_to=[reply_to] if reply_to else None,
        headers={
            "Message-ID": f"<{message_id}@{domain_of(settings.DEFAULT_FROM_EMAIL)}>",
            # No holiday notice answers what a machine wrote (RFC 3834).
            "Auto-Submitted": "auto-generated",
        },
        connection=EmailBackend(
            host=settings.EMAIL_HOST,
            port=settings.EMAIL_PORT,
            username=settings.EMAIL_HOST_USER,
            password=settings.EMAIL_HOST_PASSWORD,
            use_tls=settings.STRATA_EMAIL_SECURITY == "starttls",
            use_ssl=settings.STRATA_EMAIL_SECURITY == "tls",
            timeout=SECONDS,
        ),
    )
    try:
        mail.send()
    except (smtplib.SMTPException, OSError) as error:
        # A server's own words may repeat the address, so the log gets their kind alone.
        raise MailError(
            _("The mail server at %(host)s did not take the mail (%(kind)s).")
            % {
                "host": f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}",
                "kind": type(error).__name__,
            }
        ) from error


def is_address(text: str) -> bool:
    """Tell whether a text is one address of e-mail and nothing else."""
    local, _at, domain = text.rpartition("@")
    return (
        local != ""
        and all(0 < len(label) <= _LONGEST_LABEL for label in domain.split("."))
        and not any(each.isspace() or each in ",;<>\"'" for each in text)
    )


def domain_of(address: str) -> str:
    """Return the part of an address behind its @."""
    return parseaddr(address)[1].rpartition("@")[2] or "localhost"


def reply_address(message_id: str) -> str:
    """Return where a reply to a message goes, "" where replies are not taken."""
    if not (settings.STRATA_REPLY_ADDRESS and settings.STRATA_MAIL_HOOK_SECRETS):
        return ""
    local, _at, domain = settings.STRATA_REPLY_ADDRESS.rpartition("@")
    return f"{local}+{UUID(message_id).hex}@{domain}"


def message_replied_to(address: str) -> UUID | None:
    """Return the message whose reply address this is, or None."""
    local, _at, domain = settings.STRATA_REPLY_ADDRESS.casefold().rpartition("@")
    given, _at, given_domain = parseaddr(address)[1].casefold().rpartition("@")
    name, plus, sign = given.rpartition("+")
    if not plus or (name, given_domain) != (local, domain) or len(sign) != 32:
        return None
    try:
        return UUID(hex=sign)
    except ValueError:
        return None
