"""The corpus: KnowledgeBase -> Layer -> Source -> Document (revision) -> Passage."""

from knowledge.models.agent import AgentClient
from knowledge.models.audit import AuditEntry
from knowledge.models.department import Department
from knowledge.models.document import Document, Section
from knowledge.models.ingest import IngestRun, WorkerBeat
from knowledge.models.knowledge_base import (
    KnowledgeBase,
    KnowledgeBaseGroupAccess,
    KnowledgeBaseUserAccess,
    Layer,
)
from knowledge.models.ledger import LedgerEntry
from knowledge.models.memory import Conversation, Statement
from knowledge.models.passage import Passage
from knowledge.models.person import User
from knowledge.models.register import NeverRule, RegisterEntry
from knowledge.models.source import Original, Source
from knowledge.models.token import ApiToken
from knowledge.models.vectors import (
    EmbeddingSpace,
    PassageTokens,
    PassageVector,
    StagedVector,
)

__all__ = [
    "AgentClient",
    "ApiToken",
    "AuditEntry",
    "Conversation",
    "Department",
    "Document",
    "EmbeddingSpace",
    "IngestRun",
    "KnowledgeBase",
    "KnowledgeBaseGroupAccess",
    "KnowledgeBaseUserAccess",
    "Layer",
    "LedgerEntry",
    "NeverRule",
    "Original",
    "Passage",
    "PassageTokens",
    "PassageVector",
    "RegisterEntry",
    "Section",
    "Source",
    "StagedVector",
    "Statement",
    "User",
    "WorkerBeat",
]
