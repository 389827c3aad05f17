"""The addresses below /api/v1/."""

from django.urls import path, re_path

from retrieval.api import (
    ask,
    feedback,
    memory,
    receipts,
    resetting,
    turns,
    verify,
    views,
)

app_name = "api"

urlpatterns = [
    path("search", views.SearchView.as_view(), name="search"),
    path("ask", ask.AskView.as_view(), name="ask"),
    path("passages/<str:ref>", views.PassageView.as_view(), name="passage"),
    path("verify", verify.VerifyView.as_view(), name="verify"),
    path("turns", turns.StartTurnView.as_view(), name="start-turn"),
    path(
        "turns/<str:turn_id>/search",
        turns.TurnSearchView.as_view(),
        name="search-turn",
    ),
    path("turns/<str:turn_id>/ask", ask.TurnAskView.as_view(), name="ask-turn"),
    path(
        "turns/<str:turn_id>/verify",
        verify.TurnVerifyView.as_view(),
        name="verify-in-turn",
    ),
    path("turns/<str:turn_id>/end", turns.EndTurnView.as_view(), name="end-turn"),
    path(
        "turns/<str:turn_id>/citations",
        turns.TurnCitationsView.as_view(),
        name="turn-citations",
    ),
    path(
        "turns/<str:turn_id>/receipts/<str:receipt_id>",
        receipts.TurnReceiptView.as_view(),
        name="turn-receipt",
    ),
    path("feedback", feedback.FeedbackView.as_view(), name="feedback"),
    path("learning", feedback.LearningView.as_view(), name="learning"),
    path(
        "learning/reset", resetting.ResetLearningView.as_view(), name="reset-learning"
    ),
    path("contract", views.ContractView.as_view(), name="contract"),
    path("receipts/<str:receipt_id>", receipts.ReceiptView.as_view(), name="receipt"),
    path("layers", views.LayersView.as_view(), name="layers"),
    path("me", views.MeView.as_view(), name="me"),
    path("memory", memory.MemoryView.as_view(), name="memory"),
    path("memory/<str:statement_id>", memory.StatementView.as_view(), name="statement"),
    path("conversations", memory.ConversationsView.as_view(), name="conversations"),
    path(
        "conversations/<str:conversation_id>/end",
        memory.ConversationEndView.as_view(),
        name="conversation-end",
    ),
    path("schema", views.SchemaView.as_view(), name="schema"),
    path("docs", views.DocsView.as_view(url_name="api:schema"), name="docs"),
    re_path("^", views.NothingView.as_view(), name="nothing"),
]
