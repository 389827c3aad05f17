"""Pytest's plugins of this project; they must stand in the topmost conftest."""

pytest_plugins = [
    "pytester",
    "tests.browser_guard",
    "tests.embedded_database",
    "tests.model_server",
    "tests.requirement_hook",
]
