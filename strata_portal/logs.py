"""How a log line is written."""

import logging
import re

from knowledge.scrubbing import scrub

# Keeps a query or a file name from forging a line or colouring a terminal.
ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
# A token, also as it stands in an address; its beginning may be told. No name of ours
# that begins in the same way is so long.
TOKEN = re.compile(r"(strata(?:_|%5[Ff])[\w-]{5})[\w-]{20,}")


class OneLineFormatter(logging.Formatter):
    """A formatter whose message is one line; control characters are escaped.

    A traceback keeps its line breaks: it is ours, not a caller's. Of an API token,
    wherever it comes from, only the beginning is written, and bank details go, as they
    do from all that is kept of what people typed (REL-L3); an address holds a question.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the whole entry without what opens a door."""
        return scrub(TOKEN.sub(r"\1…", super().format(record)))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Return the line with the message's control characters escaped."""
        record.message = record.message.translate(ESCAPES)
        return super().formatMessage(record)
