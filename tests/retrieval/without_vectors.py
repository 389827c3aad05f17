"""Run in a process of its own: a portal on a database without vectors, as JSON.

`DATABASE_URL` names an empty database. It is migrated, given two sources, one of which
the reader may not see, and searched.
"""

import json

import django


def main() -> None:
    """Set up, search and print."""
    django.setup()

    from django.core.management import call_command
    from django.db import connection

    from retrieval.search import search
    from tests.retrieval.shelf import layer_of, put, reader_of

    call_command("migrate", verbosity=0)
    layer = layer_of("rules")
    put(layer, "The statutory meeting elects the auditor. See form QT-07.")
    put(layer, "Lockers are rented by the year.")
    put(layer_of("secret"), "The statutory meeting elects nobody.")
    put(layer, "A statutory meeting was held.", enabled=False)
    reader = reader_of("rules")
    answers = {}
    for query in ("statutery", "auditor", "QT-07"):
        found = search(reader, query)
        answers[query] = {
            "labels": found.labels,
            "notices": found.notices,
            "branches": [
                {name: rank.score for name, rank in hit.branches.items()}
                for hit in found.hits
            ],
            "texts": [hit.text for hit in found.hits],
            "similarity": [hit.similarity for hit in found.hits],
        }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE '%vector' UNION "
            "SELECT indexname FROM pg_indexes WHERE indexname LIKE '%trigrams'"
        )
        answers["schema"] = [name for (name,) in cursor.fetchall()]
    print(json.dumps(answers))  # noqa: T201 - the answer to the test


if __name__ == "__main__":
    main()
