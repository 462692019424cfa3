"""What a reader counts: nothing is dropped without a count, and too many bad rows fail."""

import pytest

from warmset.errors import Finding, TraceFormatError
from warmset.trace.tally import DEFAULT_BAD_SHARE, Tally


def tally_of(rows: int, bad: int, bad_share: float = DEFAULT_BAD_SHARE) -> Tally:
    tally = Tally(bad_share)
    tally.rows = rows
    for number in range(bad):
        tally.drop(f"log.jsonl:{number + 5}", f"field {number} is missing")
    return tally


def found(tally: Tally) -> list[tuple[str, int, str]]:
    return [(finding.code, finding.count, finding.first_example) for finding in tally.findings()]


def test_nothing_odd():
    tally = Tally()
    tally.check()
    assert found(tally) == []


def test_each_kind_counts_and_keeps_its_first_place():
    tally = Tally()
    tally.note("unsorted_rows", "line 3: 5 after 7")
    tally.note("no_output", "line 4")
    tally.note("unsorted_rows", "line 9: 1 after 7", 4)
    assert found(tally) == [("unsorted_rows", 5, "line 3: 5 after 7"), ("no_output", 1, "line 4")]
    assert all(isinstance(finding, Finding) for finding in tally.findings())


def test_bad_rows_come_first():
    tally = Tally()
    tally.note("no_output", "line 1")
    tally.drop("log.jsonl:2", "input_length is missing")
    tally.drop("log.jsonl:3", "input_length is -1")
    assert found(tally) == [
        ("bad_rows", 2, "log.jsonl:2: input_length is missing"),
        ("no_output", 1, "line 1"),
    ]


@pytest.mark.parametrize(
    ("rows", "bad", "bad_share", "is_refused"),
    [
        (0, 0, 0.01, False),
        (100, 0, 0.0, False),
        (100, 1, 0.01, False),
        (99, 1, 0.01, True),
        (200, 2, 0.01, False),
        (200, 3, 0.01, True),
        (1, 1, 0.01, True),
        (10, 5, 0.5, False),
        (10, 6, 0.5, True),
        (1, 1, 0.0, True),
        (1_000_000, 10_000, 0.01, False),
        (1_000_000, 10_001, 0.01, True),
    ],
)
def test_a_share_may_be_bad(rows, bad, bad_share, is_refused):
    tally = tally_of(rows, bad, bad_share)
    if not is_refused:
        tally.check()
        return
    with pytest.raises(TraceFormatError) as caught:
        tally.check()
    others = f" ({bad} of {rows} rows cannot be used)" if bad > 1 else ""
    assert str(caught.value) == f"log.jsonl:5: field 0 is missing{others}"


def test_a_file_of_rubbish_is_not_read_to_its_end():
    tally = Tally()

    def read() -> None:
        for line in range(1, 10**6):
            tally.rows += 1
            tally.drop(f"log:{line}", "not valid JSON")

    with pytest.raises(TraceFormatError) as caught:
        read()
    assert tally.rows == 1000
    assert str(caught.value) == "log:1: not valid JSON (1000 of 1000 rows cannot be used)"


def test_half_of_a_file_may_turn_out_to_be_good():
    tally = Tally(bad_share=0.5)
    for line in range(1, 4001):
        tally.rows += 1
        if line % 2 == 0:
            tally.drop(f"log:{line}", "not valid JSON")
    tally.check()
    assert tally.bad == 2000


def test_a_part_of_an_import_bears_any_share():
    """Files read apart only count; the share is that of all of them."""
    tally = Tally(bad_share=1.0)
    for line in range(1, 3001):
        tally.rows += 1
        tally.drop(f"log:{line}", "not valid JSON")
    tally.check()
    whole = Tally()
    whole.rows = 300_000
    whole.absorb(tally)
    whole.check()
    assert (whole.rows, whole.bad) == (303_000, 3000)


def test_absorbing_is_counting_on():
    first, second, one = Tally(), Tally(), Tally()
    for tally in (first, one):
        tally.rows += 2
        tally.note("no_output", "a:1")
    for tally in (second, one):
        tally.rows += 3
        tally.drop("b:1", "bad")
        tally.note("blank_lines", "b:2")
        tally.note("no_output", "b:3")
        tally.note("no_output", "b:4")
    first.absorb(second)
    assert found(first) == found(one)
    assert found(one) == [("bad_rows", 1, "b:1: bad"), ("no_output", 3, "a:1"), ("blank_lines", 1, "b:2")]
    assert (first.rows, first.bad) == (one.rows, one.bad) == (5, 1)


def test_absorbing_keeps_the_first_bad_row():
    first, second = tally_of(10, 1), Tally()
    second.drop("z:1", "bad")
    first.absorb(second)
    assert found(first) == [("bad_rows", 2, "log.jsonl:5: field 0 is missing")]
