"""Who may call the API at all; what they find there is decided by visibility."""

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser

    # rest_framework.views itself imports this module, by its name in the settings.
    from rest_framework.views import APIView

    from knowledge.models import User


class IsActiveReader(BasePermission):
    """A person who is signed in and active, or a live token of one."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return whether somebody active stands behind the request."""
        # Without anybody, the framework leaves None here (UNAUTHENTICATED_USER).
        user: User | AnonymousUser | None = request.user
        return user is not None and user.is_authenticated and user.is_active
