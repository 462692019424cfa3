import msgspec
import pytest

from warmset.catalog.tables import accelerator_rows, medium_rows, price_rows

TABLES = {"accelerators": accelerator_rows, "media": medium_rows, "prices": price_rows}


@pytest.fixture(params=TABLES)
def rows(request):
    return TABLES[request.param]()


def has_figure(row):
    return row.value not in {None, ""} or getattr(row, "low", None) is not None


def test_a_figure_has_source_date_and_origin(rows):
    assert [row for row in rows if has_figure(row) and not (row.source and row.date and row.origin)] == []


def test_a_row_without_a_figure_says_why(rows):
    assert [row for row in rows if not has_figure(row) and not row.note] == []


def test_no_row_names_a_private_note(rows):
    texts = [" ".join(map(str, msgspec.structs.astuple(row))) for row in rows]
    assert [text for text in texts if "project note" in text or "research/" in text] == []


def test_numeric_fields_hold_numbers():
    text_fields = {"mem_type", "host_link"}
    filled = [row for row in accelerator_rows() if row.value and row.field not in text_fields]
    assert all(float(row.value) >= 0 for row in filled)


def test_ranges_hold_their_value():
    ranged = [
        (float(row.value), row.low, row.high)
        for row in (*accelerator_rows(), *price_rows())
        if row.value not in {None, ""} and (row.low is not None or row.high is not None)
    ]
    assert len(ranged) > 50
    assert [row for row in ranged if not (row[1] or 0) <= row[0] <= (row[2] or row[0])] == []


def test_each_field_of_an_accelerator_is_told_once():
    keys = [(row.accelerator, row.field) for row in accelerator_rows()]
    assert len(keys) == len(set(keys))
