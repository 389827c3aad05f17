"""Signing in: as often as a person needs, not as often as guessing does."""

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from retrieval.models import RequestAllowance
from strata_portal.sign_in import FOR_NAME
from tests.factories import PASSWORD, StaffFactory

pytestmark = pytest.mark.django_db
TOO_MANY = "Too many attempts"


@pytest.fixture(autouse=True)
def quick_hashes(settings: Settings) -> None:
    """Let wrong passwords be wrong quickly."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def attempt(path: str, name: str, password: str, address: str = "192.0.2.1") -> str:
    """Send the form; return the page that comes back, "" where it lets in."""
    form = {"username": name, "password": password}
    answer = Client(REMOTE_ADDR=address).post(path, form)
    return "" if answer.status_code == 302 else answer.content.decode()


@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_guessing_is_slowed_down_and_said(path: str) -> None:
    StaffFactory(username="anna")
    for number in range(FOR_NAME):
        assert TOO_MANY not in attempt(path, "anna", f"guess {number}")
    # Now even the right one is not looked at, at neither door.
    for door in ("/login/", "/admin/login/"):
        assert TOO_MANY in attempt(door, "anna", PASSWORD)
    assert not attempt(path, "anna", PASSWORD, address="192.0.2.2")


def test_names_that_are_not_there_are_slowed_down_alike() -> None:
    for number in range(FOR_NAME):
        assert TOO_MANY not in attempt("/login/", "nobody", f"guess {number}")
    assert TOO_MANY in attempt("/login/", "nobody", "another guess")


def test_a_right_password_starts_the_count_anew() -> None:
    StaffFactory(username="anna")
    for number in range(FOR_NAME - 1):
        attempt("/login/", "anna", f"guess {number}")
    assert not attempt("/login/", "anna", PASSWORD)
    assert TOO_MANY not in attempt("/login/", "anna", "a slip")
    assert "anna" not in str(list(RequestAllowance.objects.values_list("caller")))
