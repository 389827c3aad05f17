"""Every address of the portal."""

from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path

from approvals import hooks
from knowledge.views import stop_viewing
from strata_portal import health
from strata_portal.sign_in import SignInForm

SIGN_IN = auth.LoginView.as_view(authentication_form=SignInForm)

urlpatterns = [
    path("healthz", health.web, name="health"),
    path("healthz/worker", health.worker, name="health-worker"),
    path("login/", SIGN_IN, name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("view-as/stop/", stop_viewing, name="stop-viewing"),
    path("admin/", admin.site.urls),
    path("hooks/replies/<str:public_id>", hooks.reply, name="hook-reply"),
    path("hooks/mail", hooks.mail, name="hook-mail"),
    path("api/v1/", include("approvals.api.urls")),
    path("api/v1/", include("retrieval.api.urls")),
    path("", include("approvals.urls")),
    path("", include("retrieval.urls")),
]

handler500 = "strata_portal.errors.failed"
