"""Bare `encode` in a process of its own: what the ingest is measured against.

Reads one JSON list of texts a line, encodes it as sentence-transformers does by itself
(sorted by length, in batches), and prints the seconds that took.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from sentence_transformers import SentenceTransformer

from knowledge.inference.bundled import ensure_bundled_model


def main() -> None:
    """Encode line after line until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bare_encoding")
    parser.add_argument("--model", required=True)
    parser.add_argument("--models-dir", type=Path, required=True)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--batch", type=int, required=True)
    options = parser.parse_args()
    name = options.model
    if name == "bundled":
        name = str(ensure_bundled_model(options.models_dir, lambda *_progress: None))
    model = SentenceTransformer(name, device="cpu")
    model.encode(["a first text"], prompt=options.prefix)
    print("ready", flush=True)
    for line in sys.stdin:
        texts = json.loads(line)
        started = time.perf_counter()
        model.encode(
            texts,
            prompt=options.prefix,
            batch_size=options.batch,
            normalize_embeddings=True,
        )
        print(time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main()
