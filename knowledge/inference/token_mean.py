"""Make the token means that ship with the bundled model.

Usage: ``python -m knowledge.inference.token_mean MODELS_DIR`` writes
``bundled-token-mean.f32`` and ``bundled-language-means.f32`` beside this module. Run it
again, and raise the version in ``tokens.TOKEN_FORMAT``, whenever the model or
``ordinary_texts.txt`` changes.
"""

import sys
from pathlib import Path

import numpy as np

from knowledge.inference.bundled import ensure_bundled_model
from knowledge.inference.languages import LANGUAGE_FILE, LANGUAGES
from knowledge.inference.local import MEAN_FILE, LocalBackend


def main(models_dir: str) -> None:
    """Measure the means and write them."""
    backend = LocalBackend(ensure_bundled_model(Path(models_dir)))
    mean = backend.measure_token_mean()
    write(MEAN_FILE, mean.astype("<f4").tobytes())
    # In the space that the mean just measured opens.
    backend = LocalBackend(ensure_bundled_model(Path(models_dir)))
    by_language = backend.measure_language_means()
    rows = np.stack([by_language[language] for language in LANGUAGES])
    write(LANGUAGE_FILE, rows.astype("<f4").tobytes())


def write(name: str, content: bytes) -> None:
    """Write one file beside this module."""
    Path(__file__).with_name(name).write_bytes(content)
    sys.stdout.write(f"{name}: {len(content) // 4} numbers\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m knowledge.inference.token_mean MODELS_DIR")
    main(sys.argv[1])
