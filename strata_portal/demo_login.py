"""The login and the API token that `make run` prints, kept in one private file."""

import os
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from knowledge.models import User
from knowledge.tokens import create_token, find_token

USER_NAME = "admin"
PASSWORD_BYTES = 12
TOKEN_LIFETIME = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Login:
    """What a person types at their first visit, and pastes into their first call."""

    user: str
    password: str
    token: str


def ensure_login(path: Path) -> Login:
    """Return a login that works, from `path` or made now and written there.

    Makes the administrator in a database without any. A password that a person has
    changed since is left alone and comes back empty, as does all in an installation
    whose administrators are others.
    """
    login = read_login(path) or Login(
        USER_NAME, secrets.token_urlsafe(PASSWORD_BYTES), ""
    )
    user = User.objects.filter(username=login.user).first()
    if user is None:
        if User.objects.filter(is_superuser=True).exists():
            return Login("", "", "")
        user = User.objects.create_superuser(login.user, password=login.password)
    found = find_token(login.token)
    if found is None or found.owner_id != user.pk:
        _row, token = create_token(
            owner=user, name="First steps", lifetime=TOKEN_LIFETIME, actor=user
        )
        login = replace(login, token=token)
    write_login(path, login)
    if not user.check_password(login.password):
        login = replace(login, password="")
    return login


def read_login(path: Path) -> Login | None:
    """Return the login in the file, or None where there is none to use."""
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if not values.get("user") or not values.get("password"):
        return None
    return Login(values["user"], values["password"], values.get("token", ""))


def write_login(path: Path, login: Login) -> None:
    """Write the file, readable for its owner alone."""
    text = f"user: {login.user}\npassword: {login.password}\ntoken: {login.token}\n"
    making = path.with_suffix(".new")
    making.unlink(missing_ok=True)
    descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    making.replace(path)
