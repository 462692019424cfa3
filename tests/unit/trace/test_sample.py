"""The trace that ships."""

from importlib import resources

from warmset.trace import sample_trace


def test_says_where_it_comes_from():
    provenance = sample_trace().provenance
    assert provenance.name == "Mooncake conversation trace"
    assert provenance.licence == "Apache-2.0"
    assert "FAST" in provenance.citation
    assert "3b5a594" in provenance.source


def test_needs_no_repair():
    assert sample_trace().findings == ()


def test_licence_and_origin_ship_with_it():
    folder = resources.files("warmset.trace") / "data" / "mooncake"
    assert "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "FAST" in (folder / "README.md").read_text(encoding="utf-8")
