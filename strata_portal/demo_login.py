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
    """What a person types at their first visit, and pastes into their first call.

    `user` and `token` are empty in an installation whose administrators are others;
    the password is then the demo readers' alone.
    """

    user: str
    password: str
    token: str


def ensure_login(path: Path) -> Login:
    """Return the login from `path`, or make it, with an administrator, and write it.

    Makes the administrator only in a database without any. A password that a person
    has changed since is left alone.
    """
    login = read_login(path) or Login("", secrets.token_urlsafe(PASSWORD_BYTES), "")
    user = User.objects.filter(username=login.user or USER_NAME).first()
    if user is None and not User.objects.filter(is_superuser=True).exists():
        user = User.objects.create_superuser(USER_NAME, password=login.password)
        login = replace(login, user=USER_NAME)
    elif user is None or not login.user:
        login = replace(login, user="", token="")
    if login.user and user is not None:
        login = replace(login, token=working_token(login.token, user))
    write_login(path, login)
    return login


def working_token(token: str, user: User) -> str:
    """Return `token` if it still opens the API for `user`, else a new one."""
    found = find_token(token)
    if found is not None and found.owner_id == user.pk:
        return token
    _row, made = create_token(
        owner=user, name="First steps", lifetime=TOKEN_LIFETIME, actor=user
    )
    return made


def password_holds(login: Login) -> bool:
    """Tell whether the administrator still has the password of the file."""
    user = User.objects.filter(username=login.user).first()
    return user is not None and user.check_password(login.password)


def read_login(path: Path) -> Login | None:
    """Return the login in the file, or None where there is none to use."""
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        return None
    values = dict(line.partition(": ")[::2] for line in text.splitlines())
    if not values.get("password"):
        return None
    return Login(values.get("user", ""), values["password"], values.get("token", ""))


def write_login(path: Path, login: Login) -> None:
    """Write the file, readable for its owner alone."""
    text = f"user: {login.user}\npassword: {login.password}\ntoken: {login.token}\n"
    making = path.with_suffix(".new")
    making.unlink(missing_ok=True)
    descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    making.replace(path)
