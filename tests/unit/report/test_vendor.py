"""What is vendored is what its record says."""

import hashlib
import tomllib
from importlib.resources import files

VENDOR = files("warmset.report").joinpath("vendor")


def test_vendored_files_are_unchanged():
    record = tomllib.loads(VENDOR.joinpath("VERSION.toml").read_text(encoding="utf-8"))
    hashes = {
        file["name"]: hashlib.sha256(VENDOR.joinpath(file["name"]).read_bytes()).hexdigest()
        for file in record["files"]
    }
    assert hashes == {file["name"]: file["sha256"] for file in record["files"]}
    assert {path.name for path in VENDOR.iterdir()} == {*hashes, "VERSION.toml"}


def test_the_vendored_script_cannot_close_its_element():
    text = VENDOR.joinpath("echarts.min.js").read_text(encoding="utf-8")
    assert "</script" not in text.lower()
    assert 'version="6.1.0"' in text
