"""What `warmset catalog` prints for people: the headings, and the figures with all that belongs to them."""


def test_the_table_of_models_has_its_headings(warmset, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    heading, *_ = [
        line for line in warmset("catalog", "models", "DeepSeek-V3").out.splitlines() if "┃" in line
    ]
    assert [cell.strip() for cell in heading.strip("┃").split("┃")] == [
        "model",
        "cache class",
        "layers",
        "parameters",
        "growth in bf16, bytes per token",
    ]


def test_a_figure_has_its_unit_its_origin_and_its_source(warmset, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    lines = warmset("catalog", "accelerators", "H200 SXM").out.splitlines()
    assert lines.count("H200 SXM") == 1  # one heading for all of its figures
    figures = [line for line in lines if line.startswith("  ")]
    assert all(" = not known" in line or ("   [" in line and ": " in line) for line in figures)
    assert any(" = 4.8 " in line or " = 4800 " in line for line in figures)  # HBM bandwidth, data sheet
