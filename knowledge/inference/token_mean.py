"""Make the token mean that ships with the bundled model.

Usage: ``python -m knowledge.inference.token_mean MODELS_DIR`` writes
``bundled-token-mean.f32`` beside this module. Run it again, and raise the version in
``tokens.TOKEN_FORMAT``, whenever the model or ``ordinary_texts.txt`` changes.
"""

import sys
from pathlib import Path

from knowledge.inference.bundled import ensure_bundled_model
from knowledge.inference.local import MEAN_FILE, LocalBackend


def main(models_dir: str) -> None:
    """Measure the mean and write it."""
    backend = LocalBackend(ensure_bundled_model(Path(models_dir)))
    mean = backend.measure_token_mean()
    target = Path(__file__).with_name(MEAN_FILE)
    target.write_bytes(mean.astype("<f4").tobytes())
    sys.stdout.write(f"{target.name}: {len(mean)} numbers\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python -m knowledge.inference.token_mean MODELS_DIR")
    main(sys.argv[1])
