"""The real model server, started once per test session and stopped at its end.

A pytest plugin: ``pytest_plugins = ["tests.model_server"]``. The bundled model is made
in ``STRATA_MODELS_DIR`` (default: ``var/models`` of the repository) if it is not there
yet, once for all sessions.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parent.parent
MODELS_DIR = Path(os.environ.get("STRATA_MODELS_DIR") or ROOT / "var" / "models")
# Making the model, importing torch and loading take seconds alone, minutes on a
# machine whose cores are busy.
START_SECONDS = 300.0


def free_port() -> int:
    """Return a port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_model_server(
    port: int, *arguments: str, key: str = ""
) -> subprocess.Popen[bytes]:
    """Start a model server on ``port``; it listens before its model is loaded."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "knowledge.inference.server",
            "--port",
            str(port),
            "--models-dir",
            str(MODELS_DIR),
            *arguments,
        ],
        cwd=ROOT,
        env={**os.environ, "STRATA_MODEL_KEY": key},
    )


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait for a started model server.

    Raises:
        RuntimeError: it ended, said that it failed, or took too long.
    """
    until = time.monotonic() + START_SECONDS
    health: dict[str, object] = {}
    with httpx.Client(trust_env=False, timeout=30) as client:
        while time.monotonic() < until and process.poll() is None:
            try:
                health = client.get(f"{url}/health").json()
            except httpx.HTTPError:
                health = {"status": "not listening"}
            if health["status"] == "ready":
                return
            if health["status"] == "failed":
                break
            time.sleep(0.2)
    raise RuntimeError(f"The model server did not become ready: {health}")


def stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a server; kill it if it does not go by itself."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def model_server_url() -> Iterator[str]:
    """URL of a ready model server with the bundled model."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    process = start_model_server(port)
    try:
        wait_until_ready(url, process)
        yield url
    finally:
        stop(process)
