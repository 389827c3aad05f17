"""The portal's pages of the gate."""

from django.urls import path

from approvals import views

app_name = "approvals"

urlpatterns = [
    path("questions/", views.questions_page, name="questions"),
    path("ask/<uuid:interaction_id>/send/", views.send_view, name="send"),
]
