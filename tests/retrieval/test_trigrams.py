"""A database without the vector extension, with trigrams and without (R8).

The bundled PostgreSQL has no trigrams, and its role no right to create the vector
extension in a database that is made without it. Trigrams are tested on the PostgreSQL of a Debian or
Ubuntu where one is installed (`apt-get install postgresql`).
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

DEBIAN = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
NAME = "without_vectors"


def answers_of(url: str) -> dict[str, Any]:
    """Return what a portal on an empty database answers."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.retrieval.without_vectors"],
        env={
            **os.environ,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "tests.settings",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    answers: dict[str, Any] = json.loads(run.stdout)
    return answers


@contextmanager
def debian_server() -> Iterator[str]:
    """Run Debian's PostgreSQL with an empty database; give its address."""
    place = Path(tempfile.mkdtemp(prefix="strata-pg-"))
    options: dict[str, Any] = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("postgres")
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(place, user.pw_uid, user.pw_gid)

    def run(program: str, *arguments: str) -> None:
        subprocess.run(
            [DEBIAN[0] / program, *arguments],
            cwd=place,
            check=True,
            stdout=subprocess.DEVNULL,
            **options,
        )

    data = f"--pgdata={place / 'data'}"
    try:
        run(
            "initdb",
            data,
            "--username=strata",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
        )
        given = (
            f"-c listen_addresses='' -c unix_socket_directories='{place}' -c fsync=off"
        )
        run("pg_ctl", "start", data, "-w", "-o", given, f"--log={place / 'log'}")
        try:
            run("createdb", "-h", str(place), "-U", "strata", "portal")
            yield f"host={place} user=strata dbname=portal"
        finally:
            run("pg_ctl", "stop", data, "-m", "immediate")
    finally:
        shutil.rmtree(place)


@pytest.mark.req("S2-IDX-02", "R8", "S2-EMB-05")
@pytest.mark.skipif(not DEBIAN, reason="no PostgreSQL of the system is installed")
def test_likeness_of_letters_stands_in_for_meaning() -> None:
    """Where words fail, the passage with the most like stretch is found."""
    with debian_server() as url:
        answers = answers_of(url)
    assert answers["schema"] == ["passage_text_trigrams"]
    found = answers["statutery"]
    assert found["labels"][0] == "keyword-only"
    assert found["notices"][0].endswith("likeness of letters stands in.")
    assert [text[:21] for text in found["texts"]] == ["The statutory meeting"]
    assert 0.3 <= found["branches"][0]["meaning"] <= 1
    # It is no cosine.
    assert found["similarity"] == [0.0]
    assert {"keywords", "meaning"} <= set(answers["auditor"]["branches"][0])
    assert answers["QT-07"]["branches"][0]["codes"] == 1


@pytest.mark.req("S2-IDX-02", "R8", "S2-EMB-05")
@pytest.mark.django_db(transaction=True)
def test_without_either_only_words_and_codes_count_and_that_is_said() -> None:
    """The schema stands, and the answer has the same form."""
    settings = connection.settings_dict
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        if cursor.fetchone() == (True,):
            pytest.skip("a superuser may create the extension")
        cursor.execute(f"CREATE DATABASE {NAME} TEMPLATE template0")
    try:
        parts = {
            "host": settings["HOST"],
            "port": settings["PORT"],
            "user": settings["USER"],
            "password": settings["PASSWORD"],
            "dbname": NAME,
        }
        answers = answers_of(
            " ".join(f"{name}='{value}'" for name, value in parts.items() if value)
        )
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {NAME}")
    assert answers["schema"] == []
    assert answers["statutery"]["texts"] == []
    found = answers["auditor"]
    assert found["labels"] == ["keyword-only"]
    assert "neither vectors nor trigrams" in found["notices"][0]
    assert list(found["branches"][0]) == ["keywords"]
    assert answers["QT-07"]["branches"][0]["codes"] == 1
