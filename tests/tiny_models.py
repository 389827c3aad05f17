"""Real model folders that load in a moment: few numbers, drawn at random."""

from pathlib import Path

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
)

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [
    "the",
    "lease",
    "ends",
    "after",
    "a",
    "month",
    "of",
    "notice",
    "rent",
    "is",
    "due",
    "on",
    "first",
    "day",
    "who",
    "pays",
]


def save_cross_encoder(folder: Path, *, outputs: int = 1) -> Path:
    """Save a CrossEncoder of some numbers for a pair; return its folder."""
    torch.manual_seed(outputs)
    model = BertForSequenceClassification(config(num_labels=outputs))
    # Scores of untrained weights lie close together; these are told apart.
    torch.nn.init.normal_(model.classifier.weight, std=2.0)
    save(model, folder)
    CrossEncoder(str(folder), device="cpu").save_pretrained(str(folder))
    return folder


def save_encoder(folder: Path) -> Path:
    """Save an embedding model; return its folder."""
    torch.manual_seed(0)
    save(BertModel(config()), folder / "plain")
    transformer = Transformer(str(folder / "plain"))
    pooling = Pooling(transformer.get_embedding_dimension())
    model = SentenceTransformer(modules=[transformer, pooling], device="cpu")
    model.save(str(folder / "model"))
    return folder / "model"


def config(num_labels: int = 2) -> BertConfig:
    """Return the shape of a tiny network."""
    return BertConfig(
        vocab_size=len(SPECIAL) + len(WORDS),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=num_labels,
    )


def save(model: BertModel | BertForSequenceClassification, folder: Path) -> None:
    """Save a network with a tokenizer of whole words."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *WORDS])}
    words = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = Whitespace()
    words.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(word, vocabulary[word]) for word in ("[CLS]", "[SEP]")],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=words,
        model_max_length=64,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    ).save_pretrained(str(folder))
    model.save_pretrained(str(folder))
