"""The gate's addresses below /api/v1/; those of the search follow."""

from django.urls import path

from approvals.api import views

urlpatterns = [
    path("questions", views.QuestionsView.as_view(), name="questions"),
    path("answers", views.AnswersView.as_view(), name="answers"),
    path(
        "answers/acknowledge",
        views.AcknowledgeView.as_view(),
        name="acknowledge-answers",
    ),
]
