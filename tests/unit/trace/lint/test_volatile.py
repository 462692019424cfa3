"""Forms of text that changes by itself, and forms that only look like it."""

import pytest

from warmset.trace.lint.volatile import masked, spot_at, spots

KINDS = {
    "Current time: Mon 2026-11-30 12:01:05 CET": ["date_time"],
    "2026-11-30T12:01:05.123Z": ["date_time"],
    "2026-11-30T12:01:05+01:00 ok": ["date_time"],
    "Mon, 30 Nov 2026 12:01:05 GMT": ["date_time"],
    "Monday, November 30, 2026 at 9:05 PM": ["date_time"],
    "Today Date: 26 Jul 2024": ["date"],
    "30.11.2026": ["date"],
    "it is Tuesday": ["date"],
    "Mon Nov 30 12:01:05 2026": ["date"],
    "at 09:05": ["time"],
    "[Telegram +10s Mon 2026-05-04 11:00:00 CEST] hi": ["elapsed", "date_time"],
    "seen 3 minutes ago": ["elapsed"],
    "ts 1777885200140, 1777885200.12": ["epoch", "epoch"],
    "id=3b52e1aa-3b52-4d1e-9a44-2c7b6a0d9e11": ["uuid"],
    "01ARZ3NDEKTSV4RRFFQ69G5FAV": ["ulid"],
    "msg_01AbC234xyz99 chatcmpl-9fGh2Lk0qTz": ["named_id", "named_id"],
    "0f343b0931126a20f133d67c2b018a3b": ["hex"],
    "a2V5IGZvciB0aGUgZG9vcg1x": ["token"],
    "Reasoning: high": ["flag"],
    "detailed thinking on": ["flag"],
    "hello /no_think": ["flag"],
    "turn 17 of 20": ["number", "number"],
    "facade, deadbeef, monitor, sunny, may": [],
    "thinking about it": [],
    "AGENTS.md, SOUL.md": [],
}


@pytest.mark.parametrize("text", KINDS)
def test_kinds(text):
    assert [spot.kind for spot in spots(text)] == KINDS[text]


def test_masked_lines_are_the_same_where_only_such_text_differs():
    assert masked("[12:01] turn 3, id 3b52e1aa99") == masked("[9:17] turn 12, id 0f343b0931126a20")
    assert masked("Reasoning: high, 3 left") == masked("Reasoning: low, 4 left")
    assert masked("3 cats") != masked("3 dogs")


def test_the_context_tells_spots_apart_and_holds_no_other_spot():
    first, second = spots("start 12:01, end 12:05")
    assert (first.context, second.context) == ("start ", "start \N{REPLACEMENT CHARACTER}, end ")


@pytest.mark.parametrize(("offset", "kind"), [(3, None), (4, "time"), (8, "time"), (9, "time"), (10, None)])
def test_a_spot_covers_its_end(offset, kind):
    spot = spot_at("now 12:01 or later", offset)
    assert (spot.kind if spot else None) == kind
