"""`python -m strata_portal.secret_key FOLDER`: make the signing key of a new clone.

It runs before the settings can be read, since they refuse to be without a key.
"""

import os
import secrets
import sys
from pathlib import Path

RANDOM_BYTES = 48


def ensure_secret_key(folder: Path) -> Path:
    """Write a random key to `folder` unless there is one; return its path.

    The file is readable for its owner alone.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "secret_key"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_urlsafe(RANDOM_BYTES) + "\n")
    return path


if __name__ == "__main__":
    ensure_secret_key(Path(sys.argv[1]))
