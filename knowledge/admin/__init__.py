"""The staff's pages, each on a `ScopedAdmin`."""

from knowledge.admin.agents import AgentClientAdmin
from knowledge.admin.departments import DepartmentAdmin, LedgerAdmin
from knowledge.admin.knowledge_bases import KnowledgeBaseAdmin, LayerAdmin
from knowledge.admin.people import ApiTokenAdmin, PersonAdmin, RoleAdmin
from knowledge.admin.records import (
    AuditEntryAdmin,
    DocumentAdmin,
    EmbeddingSpaceAdmin,
    IngestRunAdmin,
    PassageAdmin,
)
from knowledge.admin.register import NeverRuleAdmin, RegisterEntryAdmin
from knowledge.admin.sources import SourceAdmin

__all__ = [
    "AgentClientAdmin",
    "ApiTokenAdmin",
    "AuditEntryAdmin",
    "DepartmentAdmin",
    "DocumentAdmin",
    "EmbeddingSpaceAdmin",
    "IngestRunAdmin",
    "KnowledgeBaseAdmin",
    "LayerAdmin",
    "LedgerAdmin",
    "NeverRuleAdmin",
    "PassageAdmin",
    "PersonAdmin",
    "RegisterEntryAdmin",
    "RoleAdmin",
    "SourceAdmin",
]
