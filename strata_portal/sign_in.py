"""Signing in with a password, which nobody may guess at speed."""

import hashlib
import math
from typing import Any

from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.utils.translation import ngettext

from retrieval.allowances import forget, take

# Attempts a minute: for one name from one address, and from one address in all.
FOR_NAME, FROM_ADDRESS = 10, 120


class SignInForm(AuthenticationForm):
    """User name and password, looked at only so many times a minute."""

    def clean(self) -> dict[str, Any]:
        """Sign in, or refuse in a sentence; a right password starts the count anew."""
        name = self.cleaned_data.get("username")
        if not name or not self.cleaned_data.get("password"):
            return super().clean()
        address = self.request.META.get("REMOTE_ADDR", "") if self.request else ""
        attempt = counted_as(address, name)
        wait = take(counted_as(address), FROM_ADDRESS) or take(attempt, FOR_NAME)
        if wait:
            seconds = math.ceil(wait)
            sentence = ngettext(
                "Too many attempts. Try again in %(count)s second.",
                "Too many attempts. Try again in %(count)s seconds.",
                seconds,
            )
            raise ValidationError(sentence % {"count": seconds}, code="throttled")
        data = super().clean()
        forget(attempt)
        return data


class AdminSignInForm(SignInForm, AdminAuthenticationForm):
    """The same for the admin's own page, which only staff may pass."""


def counted_as(*parts: str) -> str:
    """Return the name under which attempts are counted; it tells nothing of them."""
    return f"sign-in:{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
