"""Whatever a row holds, a reader uses it or refuses it."""

import copy
import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.text_logs import DATA, TEXT_FORMATS, detected, read_log, write_lines
from warmset.errors import InputError
from warmset.trace import ReadOptions

LOGS = {
    "gateway": ("requests.jsonl", "batch.jsonl", "responses_api.jsonl"),
    "litellm": ("spend_logs.jsonl", "payloads.jsonl"),
    "otel": ("otlp_lines.jsonl",),
    "lmcache_agent": ("agent.jsonl",),
    "aiperf_text": ("sessions.jsonl",),
}
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.sampled_from(["", "x", "{", "[]"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "messages", "body", "values"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=5,
)


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to everything within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [above] if above else []
    for step, each in inner:
        found += places(each, (*above, step))
    return found


@pytest.mark.parametrize("name", TEXT_FORMATS)
@given(data=st.data())
def test_odd_values_anywhere_are_used_or_refused(name, data):
    log = DATA / name / data.draw(st.sampled_from(LOGS[name]))
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    for way in data.draw(st.lists(st.sampled_from(places(rows)), min_size=1, max_size=2)):
        holder, value = rows, copy.deepcopy(data.draw(values))
        try:
            for step in way[:-1]:
                holder = holder[step]
            holder[way[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # the first change took the place of the second away
    with TemporaryDirectory() as folder:
        changed = write_lines(Path(folder) / "log.jsonl", *rows)
        detected(changed)
        with suppress(InputError):
            trace = read_log(name, changed, options=ReadOptions(), bad_share=0.99)
            assert 0 < trace.num_requests <= len(rows)
            assert trace.input_tokens.min() >= 0
            assert trace.output_tokens.min() >= 0
