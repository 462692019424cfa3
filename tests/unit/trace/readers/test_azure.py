"""Azure's CSV of 2023 and later: exact times, lengths, no blocks."""

from datetime import UTC, datetime

import pytest

from tests.support.row_logs import DATA, findings, is_matched_by, read_log, refusal

FOLDER = DATA / "azure"
HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def epoch_ms(*parts: int) -> int:
    return round(datetime(*parts, tzinfo=UTC).timestamp()) * 1000


def test_2023():
    """Times of 7 decimals, CRLF, and no end of line at the end."""
    trace = read_log("azure", FOLDER / "2023.csv")
    assert trace.provenance.epoch_ms == epoch_ms(2023, 11, 16, 18, 15, 46) + 681
    assert trace.arrival_ms.tolist() == [0, 4314, 4541]
    assert trace.input_tokens.tolist() == [374, 396, 879]
    assert trace.output_tokens.tolist() == [44, 109, 55]
    assert not trace.has_blocks
    assert trace.num_blocks.tolist() == [0, 0, 0]
    assert trace.findings == ()


def test_2024():
    """Times of 6 decimals or none, with an offset."""
    trace = read_log("azure", FOLDER / "2024.csv")
    assert trace.provenance.epoch_ms == epoch_ms(2024, 5, 10) + 10
    assert trace.arrival_ms.tolist() == [0, 990, 991]
    assert trace.output_tokens.tolist() == [5, 6, 15]


def test_multimodal():
    """Half a millisecond goes up, less goes down."""
    trace = read_log("azure", FOLDER / "multimodal.csv")
    assert trace.arrival_ms.tolist() == [0, 1]
    assert trace.provenance.epoch_ms == epoch_ms(2024, 10, 15)
    assert trace.input_tokens.tolist() == [900, 10]
    assert findings(trace) == {"no_output": (1, "line 3")}


@pytest.mark.parametrize("name", ["2023.csv", "2024.csv", "multimodal.csv"])
def test_it_is_told_by_its_columns(name):
    assert is_matched_by(FOLDER / name) == ["azure"]


@pytest.mark.parametrize(
    ("written", "expected_ms"),
    [
        ("2023-11-16 18:15:46", epoch_ms(2023, 11, 16, 18, 15, 46)),
        ("2023-11-16T18:15:46Z", epoch_ms(2023, 11, 16, 18, 15, 46)),
        ("2023-11-16 18:15:46.6", epoch_ms(2023, 11, 16, 18, 15, 46) + 600),
        ("2023-11-16 18:15:46.9995000", epoch_ms(2023, 11, 16, 18, 15, 47)),
        ("2023-11-16 18:15:46.9994999", epoch_ms(2023, 11, 16, 18, 15, 46) + 999),
        ("2023-11-16 18:15:46.123456789", epoch_ms(2023, 11, 16, 18, 15, 46) + 123),
        ("2023-12-31 23:59:59.9999999", epoch_ms(2024, 1, 1)),
        ("2024-02-29 00:00:00+05:30", epoch_ms(2024, 2, 28, 18, 30)),
        ("2024-02-29 00:00:00-0800", epoch_ms(2024, 2, 29, 8)),
        ("1970-01-01 00:00:00", 0),
    ],
)
def test_times(tmp_path, written, expected_ms):
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}{written},1,1\n")
    assert read_log("azure", path).provenance.epoch_ms == expected_ms


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("now,1,1", "TIMESTAMP is missing or no time: it must be as 2023-11-16 18:15:46.6805900"),
        (",1,1", "TIMESTAMP is missing or no time: it must be as 2023-11-16 18:15:46.6805900"),
        ("2023-02-30 00:00:00,1,1", "TIMESTAMP is no day of the calendar: 2023-02-30"),
        ("2023-02-03 24:00:00,1,1", "TIMESTAMP is no time of day: 24:00:00"),
        ("0001-01-01 00:00:00,1,1", "TIMESTAMP lies before 1970: 0001-01-01"),
        ("2023-02-03 10:00:00,NaN,1", "ContextTokens is 'NaN', not a whole number"),
        ("2023-02-03 10:00:00,nan,1", "ContextTokens is 'nan', not a whole number"),
        ("2023-02-03 10:00:00,12.0,1", "ContextTokens is '12.0', not a whole number"),
        ("2023-02-03 10:00:00,,1", "ContextTokens is missing"),
        ("2023-02-03 10:00:00,1,-1", "GeneratedTokens is -1: it must lie between 0 and 1099511627776"),
        ("2023-02-03 10:00:00,1,٣", "GeneratedTokens is '٣', not a whole number"),
        ("2023-02-03 10:00:00,1", "has 2 cells under 3 columns: is a quote missing?"),
        (HEADER.strip(), "TIMESTAMP is missing or no time: it must be as 2023-11-16 18:15:46.6805900"),
    ],
)
def test_a_bad_row(tmp_path, line, why):
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}2023-02-03 10:00:00,1,1\n{line}\n", encoding="utf-8")
    assert refusal("azure", path) == f":3: {why}"


def test_times_going_back_are_sorted_and_counted(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}2023-02-03 10:00:01,1,1\n2023-02-03 10:00:00,2,1\n")
    trace = read_log("azure", path)
    assert trace.input_tokens.tolist() == [2, 1]
    assert findings(trace)["unsorted_rows"][0] == 1


def test_a_header_alone_holds_no_requests(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(HEADER)
    assert refusal("azure", path) == ": holds no requests"
