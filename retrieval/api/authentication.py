"""Who calls the API: whoever holds a token, or a browser that is signed in."""

import logging
from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, ParseError
from rest_framework.request import Request

from knowledge.models import ApiToken
from knowledge.tokens import START, find_token, reader_of, shown_prefix

if TYPE_CHECKING:
    from knowledge.models import User

logger = logging.getLogger(__name__)

SCHEME = "Bearer"
# Names under which programs put a token into an address.
TOKEN_PARAMETERS = frozenset(
    {"access_token", "api_key", "apikey", "auth", "key", "token"}
)


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer strata_…`: acts for the token's owner, within its scope.

    A token that is wrong, expired, revoked or cut short, or whose owner is inactive,
    gets one and the same answer, after the same work. The attempt is logged with the
    token's beginning only.
    """

    def authenticate(self, request: Request) -> "tuple[User, ApiToken] | None":
        """Return (owner, token), or None where the request brings no token."""
        refuse_token_in_address(request)
        scheme, _space, token = (
            get_authorization_header(request).decode("latin-1").partition(" ")
        )
        if scheme.lower() != SCHEME.lower():
            return None
        row = find_token(token.strip())
        if row is None:
            logger.warning(
                "refused an API token that begins with %s, from %s",
                shown_prefix(token.strip()),
                request.META.get("REMOTE_ADDR", "an unknown address"),
            )
            raise AuthenticationFailed(
                "This token opens nothing: it is wrong, expired or revoked.",
                code="invalid_token",
            )
        # The person behind the session, if there is one too, does not count.
        request.reader = reader_of(row)  # type: ignore[attr-defined]
        return row.owner, row

    def authenticate_header(self, request: Request) -> str:
        """Return the challenge that goes with a 401."""
        return f'{SCHEME} realm="Strata Portal"'


def refuse_token_in_address(request: Request) -> None:
    """Refuse a token in the query string: addresses end up in logs and histories."""
    for name, values in request.query_params.lists():
        if name.lower() in TOKEN_PARAMETERS or any(
            value.startswith(START) for value in values
        ):
            raise ParseError(
                "Send the token in the Authorization header, as in "
                f"Authorization: {SCHEME} {START}…, never in the address. Revoke this "
                "one: the address may have been logged on its way.",
                code="token_in_address",
            )
