import tomllib

import pytest

from predcp.data import DataError, data_directory, registry, source

PINNED = ("file", "sha256", "url")


def test_registry_pins_what_the_data_folder_says(real_data):
    with (real_data / "SOURCES.toml").open("rb") as file:
        published = tomllib.load(file)
    # The folder may hold more than this version knows.
    assert set(registry()) <= set(published)
    for name, ours in registry().items():
        entry = published[name]
        if ours.kind != "few-shot":
            assert (ours.file, ours.sha256) == (entry["file"], entry["sha256"])
            assert [download.url for download in ours.downloads] == [entry["url"]]
    assert source("cifar100").downloads[0].hash == f"md5:{published['cifar100']['md5']}"
    assert source("omniglot").sha256 == published["omniglot"]["sha256"]
    for download in source("omniglot").downloads:
        assert download.hash is not None
        assert download.hash.removeprefix("md5:") in published["omniglot"]["url"]


def test_every_download_is_pinned_by_a_hash():
    for entry in registry().values():
        for download in entry.downloads:
            assert download.url.startswith("https://")
            assert download.hash is not None or entry.sha256 is not None


def test_unknown_name_lists_the_known_ones():
    with pytest.raises(DataError, match=r"'bostn'.*boston"):
        source("bostn")


def test_data_directory_prefers_argument_then_environment_then_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("PREDCP_DATA", str(tmp_path / "environment"))
    assert data_directory(tmp_path / "argument") == tmp_path / "argument"
    assert data_directory() == tmp_path / "environment"
    monkeypatch.delenv("PREDCP_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_directory() == tmp_path / "cache" / "predcp" / "data"
