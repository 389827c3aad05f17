"""The portal's pages for readers."""

from django.urls import path

from retrieval import asking, cited, rating, reading, receipt_pages, views

app_name = "portal"

urlpatterns = [
    path("", views.search_page, name="search"),
    path("ask/", asking.ask_page, name="ask"),
    path("read/<str:ref>/", reading.read_page, name="read"),
    path("read/<str:ref>/difference/", cited.difference_page, name="difference"),
    path("cited/<str:turn_id>/<int:mark>/", cited.cited_page, name="cited"),
    path("asked/<str:interaction_id>/<int:mark>/", cited.asked_page, name="asked"),
    path("asked/<str:interaction_id>/rate/", rating.rating_page, name="rate"),
    path("source/<uuid:public_id>/", reading.source_page, name="source"),
    path("original/<int:number>/", reading.original_file, name="original"),
    path("receipts/keys.json", receipt_pages.keys_file, name="receipt-keys"),
    path("receipts/<str:receipt_id>/", receipt_pages.receipt_page, name="receipt"),
    path(
        "receipts/<str:receipt_id>/file/",
        receipt_pages.receipt_file,
        name="receipt-file",
    ),
    path("knowledge-bases/", views.knowledge_bases_page, name="knowledge-bases"),
    path("data-flow/", views.data_flow_page, name="data-flow"),
    path("account/memory/", views.memory_page, name="memory"),
    path(
        "account/memory/<uuid:statement_id>/forget/",
        views.forget_view,
        name="forget",
    ),
    path("account/tokens/", views.tokens_page, name="tokens"),
    path(
        "account/tokens/<int:token_id>/revoke/",
        views.revoke_token_view,
        name="revoke-token",
    ),
]
