"""A real mail server on this machine that keeps what it is sent."""

import socket
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from types import TracebackType
from typing import cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import Envelope


class MailServer:
    """Speaks SMTP on a free loopback `port`; a context manager.

    `mails` are what was sent to it, in order. While `refuses` is set, it takes none.
    """

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.refuses = False

    async def handle_DATA(  # noqa: N802 (the name by which it is called)
        self, _server: object, _session: object, envelope: Envelope
    ) -> str:
        """Keep one mail."""
        if self.refuses:
            return "451 Try again later"
        content = cast(bytes, envelope.content)
        self.mails.append(
            cast(EmailMessage, message_from_bytes(content, policy=default))
        )
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 Taken"

    def __enter__(self) -> "MailServer":
        """Start serving."""
        # The controller looks whether it listens by the port that it was given.
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _at: TracebackType | None,
    ) -> None:
        """Stop serving."""
        self._controller.stop()
