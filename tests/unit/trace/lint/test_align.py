"""What two texts or lists share: by tables, and against slow and obvious ways."""

from hypothesis import given
from hypothesis import strategies as st

from warmset.trace.lint.align import LONG_LINE_SIZE, common_prefix_size, common_size, shared, units_of

texts = st.text(alphabet="ab.\n ", max_size=40)
lists = st.lists(st.integers(0, 9), max_size=14)


@given(texts, texts)
def test_common_prefix(first, second):
    size = common_prefix_size(first, second)
    assert first[:size] == second[:size]
    assert first[size : size + 1] != second[size : size + 1] or size == len(first) == len(second)


@given(texts)
def test_units_join_to_the_text(text):
    assert "".join(units_of(text)) == text
    assert "".join(units_of(text * 60)) == text * 60


def test_long_lines_are_cut_into_sentences():
    sentence = "x" * 500 + ". "
    assert units_of("short. line\n") == ["short. line\n"]
    assert units_of(sentence * 3) == [sentence] * 3
    assert len(sentence * 3) > LONG_LINE_SIZE


@given(lists, lists)
def test_runs_are_common_ordered_and_apart(first, second):
    found = shared(first, second)
    first_end = second_end = 0
    for run in found.runs:
        assert run.size > 0
        assert first[run.first : run.first + run.size] == second[run.second : run.second + run.size]
        assert run.first >= first_end
        assert run.second >= second_end
        first_end, second_end = run.first + run.size, run.second + run.size
    for first_place, second_place in found.moved:
        assert first[first_place] == second[second_place]


@given(st.lists(st.integers(0, 50), unique=True, max_size=20))
def test_a_list_is_one_run_with_itself(values):
    assert [run.size for run in shared(values, values).runs] == ([len(values)] if values else [])


def test_a_moved_unit_is_told_from_an_edited_one():
    assert shared("abcdM", "abMcd").moved == ((4, 2),)
    assert shared("abXcd", "abYcd").moved == ()
    assert [tuple(run) for run in shared("abXcd", "abYcd").runs] == [(0, 0, 2), (3, 3, 2)]


def test_common_size_counts_lines_wherever_they_stand_and_an_equal_end():
    assert common_size("one\ntwo\nthree 12", "two\none\nthree 45") == len("one\n") + len("two\n")
    assert common_size("now 12:01, all", "now 12:02, all") == len(", all")
    assert common_size("same", "same") == 4
    assert common_size("", "same") == 0
