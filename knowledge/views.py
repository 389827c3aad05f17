"""The one page of this app outside the admin."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from knowledge import viewing


@login_required
@require_POST
def stop_viewing(request: HttpRequest) -> HttpResponse:
    """See the portal with one's own eyes again."""
    if viewing.is_marked(request):
        viewing.end(request)
        messages.success(request, _("You see your own view again."))
    return redirect("portal:search")
