"""The sentence-transformers backend. It alone imports torch: for the model server.

Any sentence-transformers model works, from a folder or by its hub name. Token vectors
are the last hidden states of the tokens of the text itself (see ``tokens``); a model
that has none, or whose tokenizer cannot say where a token ends, gives passages without.
"""

import hashlib
import json
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import Encoding, Tokenizer

from knowledge.inference import bundled
from knowledge.inference.gateway import (
    InputType,
    ModelInfo,
    ModelUnavailableError,
    PassageEmbedding,
    QueryEmbedding,
)
from knowledge.inference.prepared import TOKENS_PER_PASS, Embedded, Prepared
from knowledge.inference.tokens import (
    TOKEN_FORMAT,
    Floats,
    can_pack,
    centre_and_turn,
    pack_passage,
    pack_query,
)

# Mean of the bundled model's unit token vectors over ``ordinary_texts.txt``, 384
# little-endian floats. Made by ``python -m knowledge.inference.token_mean``.
MEAN_FILE = "bundled-token-mean.f32"
TEXTS_FILE = "ordinary_texts.txt"

# The longest input that is worth tokenizing where a model states no window.
_UNSTATED_WINDOW = 8_192

_TEXTS_PER_TURN = 16


class LocalBackend:
    """One model, in this process.

    ``prepare``, ``count_tokens`` and ``describe`` may be called from any thread;
    ``compute`` and what embeds from one thread at a time.

    Raises:
        ModelUnavailableError: the model cannot be loaded; the message says why.
    """

    def __init__(self, model: str | Path, device: str = "cpu") -> None:
        name = str(model)
        try:
            self._model = SentenceTransformer(name, device=device)
        except Exception as error:
            # The library and the hub client raise dozens of types for one fact.
            raise ModelUnavailableError(
                f"The embedding model {name!r} cannot be loaded: {error}. Give a "
                "folder with a sentence-transformers model, a hub name that this "
                "machine can reach, or 'bundled'."
            ) from error
        self._model.eval()
        tokenizer = self._model.tokenizer
        fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
        if not isinstance(fast, Tokenizer):
            raise ModelUnavailableError(
                f"The embedding model {name!r} has no fast tokenizer, so its tokens "
                "cannot be counted. Choose a model with a tokenizer.json."
            )
        self._tokenizer = fast
        # The library switches padding and truncation of the one tokenizer for each
        # call, and a copy of it would take 270 MB.
        self._tokenizing = threading.Lock()
        self._splits_special_tokens = bool(
            getattr(tokenizer, "split_special_tokens", False)
        )
        stated = self._model.max_seq_length or math.inf
        self._window = int(stated) if stated < 1e6 else _UNSTATED_WINDOW
        self._prefixes = _read_prefixes(self._model, name)
        (sample,) = self._tokenize([self._prefixes[InputType.PASSAGE] + "a"])
        (alone,) = self._tokenize(["a"], add_special_tokens=False)
        self._reserved = len(sample.ids) - len(alone.ids)
        self._between_layers: Callable[[], None] | None = None
        self._hook_layers()
        manifest = _read_manifest(Path(name))
        with torch.inference_mode():
            probe = self._forward(["a"], InputType.PASSAGE)
        dimension = int(probe.vectors.shape[1])
        token_dimension = int(probe.tokens.shape[2])
        if not can_pack(token_dimension) or not _pads_after(tokenizer):
            token_dimension = 0
        self._token_dimension = token_dimension
        self._mean = np.zeros(token_dimension, dtype=np.float32)
        self._info = ModelInfo(
            model_id=manifest.get("model_id") or _public_name(name),
            dimension=dimension,
            window=self._window,
            reserved=self._reserved,
            query_prefix=self._prefixes[InputType.QUERY],
            passage_prefix=self._prefixes[InputType.PASSAGE],
            token_format=TOKEN_FORMAT if token_dimension else "",
            token_dimension=token_dimension,
            weights=manifest.get("weights") or _hash_weights(self._model),
        )
        if token_dimension:
            is_bundled = self._info.weights == bundled.weights_id()
            self._mean = _read_mean() if is_bundled else self.measure_token_mean()

    def describe(self) -> ModelInfo:
        """Say which model this is."""
        return self._info

    def embed_query(self, text: str) -> QueryEmbedding:
        """Embed one query; what exceeds the window is left out."""
        (embedded,) = self.compute(
            self.prepare([text], InputType.QUERY), InputType.QUERY
        )
        return QueryEmbedding(tuple(embedded.vector.tolist()), embedded.tokens)

    def embed_passages(self, texts: Sequence[str]) -> list[PassageEmbedding]:
        """Embed passages, in the order of ``texts``; what exceeds the window is cut."""
        prepared = self.prepare(texts, InputType.PASSAGE)
        result: dict[int, PassageEmbedding] = {}
        for positions in slices_by_length(prepared, TOKENS_PER_PASS):
            chosen = [prepared[position] for position in positions]
            computed = self.compute(chosen, InputType.PASSAGE)
            for position, embedded in zip(positions, computed, strict=True):
                result[position] = PassageEmbedding(
                    tuple(embedded.vector.tolist()),
                    embedded.tokens,
                    prepared[position].token_count,
                )
        return [result[position] for position in range(len(prepared))]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count each text's tokens, without prefix and special tokens."""
        encodings = self._tokenize(texts, add_special_tokens=False)
        return [len(encoding.ids) for encoding in encodings]

    def prepare(self, texts: Sequence[str], kind: InputType) -> list[Prepared]:
        """Tokenize texts: their lengths decide which are computed together."""
        prefix = self._prefixes[kind]
        encodings = self._tokenize([prefix + text for text in texts])
        return [
            self._locate(text, encoding, len(prefix))
            for text, encoding in zip(texts, encodings, strict=True)
        ]

    def compute(
        self,
        prepared: Sequence[Prepared],
        kind: InputType,
        *,
        between_layers: Callable[[], None] | None = None,
    ) -> list[Embedded]:
        """Run the model once over all of ``prepared``, padded to the longest.

        ``between_layers`` is called before each layer of the network and may itself
        call ``compute``: that is how a query overtakes passages half-way.
        """
        outer, self._between_layers = self._between_layers, between_layers
        try:
            with torch.inference_mode():
                output = self._forward([item.text for item in prepared], kind)
        finally:
            self._between_layers = outer
        return [
            Embedded(vector, self._pack(item, output, row, kind))
            for row, (item, vector) in enumerate(
                zip(prepared, output.vectors, strict=True)
            )
        ]

    def measure_token_mean(self) -> Floats:
        """Measure the mean unit token vector over the ordinary texts, by language.

        Each of the five languages weighs the same. The texts are the product's own:
        a mean of an installation's passages would let hidden ones move scores.
        """
        means = [
            np.array(_to_unit(self._own_vectors(texts)).mean(axis=0, dtype=np.float64))
            for texts in _ordinary_texts().values()
        ]
        mean: npt.NDArray[np.float32] = np.stack(means).mean(axis=0).astype(np.float32)
        return mean

    def measure_language_means(self) -> dict[str, Floats]:
        """Measure where each language's tokens lie in the space of packed ones."""
        return {
            language: centre_and_turn(self._own_vectors(texts), self._mean).mean(axis=0)
            for language, texts in _ordinary_texts().items()
        }

    def _own_vectors(self, texts: list[str]) -> Floats:
        """Return the token vectors of texts, one after the other."""
        prepared = self.prepare(texts, InputType.PASSAGE)
        with torch.inference_mode():
            output = self._forward(texts, InputType.PASSAGE)
        rows = [_own_rows(output, row, item) for row, item in enumerate(prepared)]
        return np.concatenate(rows)

    def _tokenize(
        self, texts: Sequence[str], *, add_special_tokens: bool = True
    ) -> list[Encoding]:
        """Tokenize whole texts, a few at a time, so that a query gets in between."""
        encodings: list[Encoding] = []
        for start in range(0, len(texts), _TEXTS_PER_TURN):
            with self._tokenizing:
                self._tokenizer.no_padding()
                self._tokenizer.no_truncation()
                self._tokenizer.encode_special_tokens = self._splits_special_tokens
                encodings += self._tokenizer.encode_batch(
                    list(texts[start : start + _TEXTS_PER_TURN]),
                    add_special_tokens=add_special_tokens,
                )
        return encodings

    def _hook_layers(self) -> None:
        def pause(*_arguments: object) -> None:
            if self._between_layers is not None:
                self._between_layers()

        for module in self._model.modules():
            if isinstance(module, torch.nn.ModuleList):
                for layer in module:
                    layer.register_forward_pre_hook(pause)

    def _locate(self, text: str, encoding: Encoding, prefix_length: int) -> Prepared:
        own = [
            (index, end)
            for index, ((_start, end), special) in enumerate(
                zip(encoding.offsets, encoding.special_tokens_mask, strict=True)
            )
            if not special and end > prefix_length
        ]
        total = len(encoding.ids)
        skipped = own[0][0] if own else total
        fitting = max(0, len(own) - max(0, total - self._window))
        return Prepared(
            text=text,
            length=min(total, self._window),
            token_count=len(own),
            skipped=skipped,
            ends=tuple(end - prefix_length for _index, end in own[:fitting]),
        )

    def _forward(self, texts: list[str], kind: InputType) -> "_Output":
        # ``encode`` would do the same but give either vectors or token vectors.
        with self._tokenizing:
            prompt = self._prefixes[kind] or None
            features = self._model.preprocess(texts, prompt=prompt)
        output = self._model(features)
        vectors = torch.nn.functional.normalize(output["sentence_embedding"], dim=1)
        tokens = output.get("token_embeddings")
        if not isinstance(tokens, torch.Tensor):
            tokens = vectors.new_zeros((len(texts), 0, 0))
        return _Output(vectors.float().cpu().numpy(), tokens.float().cpu().numpy())

    def _pack(
        self, item: Prepared, output: "_Output", row: int, kind: InputType
    ) -> bytes:
        if not self._token_dimension:
            return b""
        own = _own_rows(output, row, item)
        if kind is InputType.QUERY:
            return pack_query(own, item.ends, self._mean)
        return pack_passage(own, item.ends, self._mean)


@dataclass(frozen=True, slots=True)
class _Output:
    """Unit vectors (inputs, dimension); token vectors (inputs, tokens, dimension).

    A model without token vectors has them of dimension 0.
    """

    vectors: Floats
    tokens: Floats


def _own_rows(output: _Output, row: int, item: Prepared) -> Floats:
    """Take the token vectors of the text itself, without prefix and special tokens."""
    return output.tokens[row, item.skipped : item.skipped + len(item.ends)]


def slices_by_length(prepared: Sequence[Prepared], tokens: int) -> list[list[int]]:
    """Cut inputs into slices of at most ``tokens`` padded tokens, longest first.

    Returns positions in ``prepared``, each once. An input longer than ``tokens`` has
    a slice of its own.
    """
    order = sorted(range(len(prepared)), key=lambda p: -prepared[p].length)
    slices: list[list[int]] = []
    longest = 0
    for position in order:
        if not slices or longest * (len(slices[-1]) + 1) > tokens:
            slices.append([])
            longest = prepared[position].length
        slices[-1].append(position)
    return slices


def _read_prefixes(model: SentenceTransformer, name: str) -> dict[InputType, str]:
    """Take the prefixes from the model's prompts, or by name for the e5 family.

    The e5 models were trained with prefixes that most of their folders do not state.
    """
    query = model.prompts.get("query") or ""
    passage = model.prompts.get("passage") or model.prompts.get("document") or ""
    family = Path(name).name.lower()
    stated = query or passage
    if not stated and "e5" in family.split("-") and "instruct" not in family:
        query, passage = bundled.QUERY_PREFIX, bundled.PASSAGE_PREFIX
    return {InputType.QUERY: query, InputType.PASSAGE: passage}


def _pads_after(tokenizer: object) -> bool:
    """Whether padding and truncation happen at the end, as token rows assume."""
    return (
        getattr(tokenizer, "padding_side", "right") == "right"
        and getattr(tokenizer, "truncation_side", "right") == "right"
    )


def _read_manifest(folder: Path) -> dict[str, str]:
    """Read the identity that the bundled model's folder states, if it is one."""
    if not bundled.is_complete(folder):
        return {}
    manifest = json.loads((folder / bundled.MANIFEST).read_text("utf-8"))
    return {"model_id": manifest["model_id"], "weights": manifest["weights"]}


def _public_name(name: str) -> str:
    """Name a model without telling where on this machine its folder is."""
    return Path(name).name if Path(name).is_dir() else name


def _hash_weights(model: SentenceTransformer) -> str:
    """Hash parameters, module settings and tokenizer: the same on every machine."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        flat = tensor.detach().cpu().contiguous().view(-1)
        digest.update(flat.view(torch.uint8).numpy().data)
    digest.update(str(model).encode())
    return digest.hexdigest()


def _ordinary_texts() -> dict[str, list[str]]:
    """Return the product's own texts by language."""
    by_language: dict[str, list[str]] = {}
    for line in _package_file(TEXTS_FILE).decode("utf-8").splitlines():
        language, text = line.split("\t")
        by_language.setdefault(language, []).append(text)
    return by_language


def _to_unit(vectors: Floats) -> Floats:
    unit: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _package_file(name: str) -> bytes:
    return (resources.files("knowledge.inference") / name).read_bytes()


def _read_mean() -> Floats:
    return np.frombuffer(_package_file(MEAN_FILE), "<f4").astype(np.float32)
