"""A CrossEncoder, which reads question and passage together. Imports torch.

Any of sentence-transformers with one output, from a folder or by its hub name, is
served under ``/v1/rerank`` beside the embedding model.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder

from knowledge.inference.gateway import ModelUnavailableError


class PairScorer:
    """One CrossEncoder, in this process; for one thread at a time.

    Raises:
        ModelUnavailableError: it cannot be loaded, or scores more than one thing.
    """

    def __init__(self, model: str | Path, device: str = "cpu") -> None:
        name = str(model)
        try:
            self._model = CrossEncoder(name, device=device)
        except Exception as error:
            # The library and the hub client raise dozens of types for one fact.
            raise ModelUnavailableError(
                f"The reranking model {name!r} cannot be loaded: {error}. Give a folder "
                "with a CrossEncoder of sentence-transformers, or a hub name that this "
                "machine can reach."
            ) from error
        if self._model.num_labels != 1:
            raise ModelUnavailableError(
                f"The reranking model {name!r} gives {self._model.num_labels} numbers "
                "for a pair. Choose one that gives a single score."
            )
        self.name = Path(name).name if Path(name).is_dir() else name

    def score(self, query: str, documents: Sequence[str]) -> list[float]:
        """Return how well each document answers the query, 0 to 1."""
        scores = self._model.predict(
            [(query, document) for document in documents],
            activation_fn=torch.nn.Sigmoid(),
            show_progress_bar=False,
        )
        return [float(score) for score in scores]
