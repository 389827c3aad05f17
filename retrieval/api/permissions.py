"""Who may call the API at all; what they find there is decided by visibility."""

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

if TYPE_CHECKING:
    # rest_framework.views itself imports this module, by its name in the settings.
    from rest_framework.views import APIView


class IsActiveReader(BasePermission):
    """A person who is signed in and active, or a live token of one."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return whether somebody active stands behind the request."""
        user = request.user
        return bool(user and user.is_authenticated and user.is_active)
