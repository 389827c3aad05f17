"""The portal's pages for readers."""

from django.urls import URLPattern

app_name = "portal"

urlpatterns: list[URLPattern] = []
