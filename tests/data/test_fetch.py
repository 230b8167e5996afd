import hashlib
import http.server
import io
import threading
import zipfile
from dataclasses import replace

import pytest

from predcp.data import DataError, Download, Source, fetch, load, source, verify

CONTENT = b"1 2 3\n4 5 6\n"


@pytest.fixture
def server(tmp_path):
    """A web server of the files in a folder; yields the folder and its address."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **keywords):
            super().__init__(*arguments, directory=str(folder), **keywords)

        def log_message(self, format, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def small_source(url: str, content: bytes = CONTENT, **changes) -> Source:
    digest = hashlib.sha256(content).hexdigest()
    base = Source(
        name="small",
        title="two rows",
        kind="regression",
        rows=2,
        columns=2,
        file="uci/small.txt",
        sha256=digest,
        downloads=(Download(url, f"sha256:{digest}"),),
    )
    return replace(base, **changes)


def test_fetch_downloads_checks_and_keeps(server, tmp_path):
    folder, address = server
    (folder / "small.txt").write_bytes(CONTENT)
    entry = small_source(f"{address}/small.txt")
    path = fetch(entry, tmp_path / "data")
    assert path.read_bytes() == CONTENT
    assert verify(entry, tmp_path / "data") == "matches the pinned hash"
    (folder / "small.txt").unlink()
    assert fetch(entry, tmp_path / "data") == path
    assert [item.name for item in (tmp_path / "data").iterdir()] == ["uci"]


def test_wrong_hash_keeps_nothing(server, tmp_path):
    folder, address = server
    (folder / "small.txt").write_bytes(CONTENT + b"7 8 9\n")
    with pytest.raises(DataError, match="does not serve the pinned small"):
        fetch(small_source(f"{address}/small.txt"), tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_server_without_the_file_and_no_server(server, tmp_path):
    _, address = server
    with pytest.raises(DataError, match=r"cannot download small.*check the network"):
        fetch(small_source(f"{address}/absent.txt"), tmp_path / "data")
    with pytest.raises(DataError, match=r"ConnectionError.*copy the file by hand"):
        fetch(small_source("http://127.0.0.1:9/small.txt"), tmp_path / "data")


def test_member_of_a_zip(server, tmp_path):
    folder, address = server
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("table.csv", CONTENT)
    (folder / "archive.zip").write_bytes(buffer.getvalue())
    entry = small_source("", build="zip-member", member="table.csv")
    entry = replace(entry, downloads=(Download(f"{address}/archive.zip"),))
    assert fetch(entry, tmp_path / "data").read_bytes() == CONTENT
    with pytest.raises(DataError, match=r"does not hold other\.csv"):
        fetch(replace(entry, member="other.csv"), tmp_path / "elsewhere")


def test_member_with_a_wrong_hash_is_refused(server, tmp_path):
    folder, address = server
    with zipfile.ZipFile(folder / "archive.zip", "w") as archive:
        archive.writestr("table.csv", CONTENT + b"tampered")
    entry = small_source("", build="zip-member", member="table.csv")
    entry = replace(entry, downloads=(Download(f"{address}/archive.zip"),))
    with pytest.raises(DataError, match="damaged or is another file"):
        fetch(entry, tmp_path / "data")
    assert list((tmp_path / "data").iterdir()) == []


def test_a_mirror_serves_the_real_file(server, real_data, tmp_path):
    folder, address = server
    (folder / "yacht").write_bytes((real_data / "uci" / "yacht.txt").read_bytes())
    fetch(source("yacht"), tmp_path / "data", urls=(f"{address}/yacht",))
    assert len(load("yacht", tmp_path / "data")) == 308


def test_mistakes_are_named(tmp_path):
    with pytest.raises(DataError, match="needs 2 addresses, got 1"):
        fetch(source("omniglot"), tmp_path, urls=("http://127.0.0.1:9/one.zip",))
    with pytest.raises(DataError, match=r"no public address.*train\.csv, val\.csv and test\.csv"):
        fetch(source("mini-imagenet"), tmp_path)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match="cannot write to the data directory"):
        fetch(source("yacht"), tmp_path / "file")


def test_present_but_damaged_file_is_not_served(tmp_path):
    entry = small_source("http://127.0.0.1:9/small.txt")
    path = tmp_path / entry.file
    path.parent.mkdir()
    path.write_bytes(CONTENT[:5])
    with pytest.raises(DataError, match="damaged or is another file"):
        fetch(entry, tmp_path)
