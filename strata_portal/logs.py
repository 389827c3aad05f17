"""How a log line is written."""

import logging

# Keeps a query or a file name from forging a line or colouring a terminal.
ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}


class OneLineFormatter(logging.Formatter):
    """A formatter whose message is one line; control characters are escaped.

    A traceback keeps its line breaks: it is ours, not a caller's.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line with the message's control characters escaped."""
        record.message = record.message.translate(ESCAPES)
        return super().formatMessage(record)
