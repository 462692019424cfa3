"""Lint of real traces against counts from outside.

Sources: traces/README.md (five groups of copied sessions, 18 redundant of 710), research/trace-facts.md
section 4 (2.8 % of consecutive requests drop more than 10 % of the previous prompt, on the 692 distinct
sessions) and section 6, quirks 3 and 15 (1,180 stamps in 3 s steps; 12 groups, 46 sessions share 5 turns).
"""

import gzip
import json

import numpy as np
import pytest

from tests.support.lint_logs import BLOCK_TOKENS, encode
from tests.support.weka import WEKA_ALL, read_weka_sessions
from warmset.trace import sample_trace
from warmset.trace.lint import lint_ids, lint_text
from warmset.trace.lint.paths import known_blocks
from warmset.trace.lint.sessions import copied_sessions, forked_sessions, session_rows
from warmset.trace.lint.turns import drops, turns_of
from warmset.trace.prompt import Prompt

GROUPS_OF_COPIES = [
    "0382 0384 0394 0402 0406 0412 0415 0420 0428 0430 0435 0450",
    "0386 0437 0441",
    "0397 0410",
    "0398 0426",
    "0403 0427 0432 0449",
]


@pytest.fixture(scope="module")
def weka(shared):
    return read_weka_sessions(shared / WEKA_ALL)


def test_copied_sessions_of_weka(weka):
    groups = copied_sessions(weka, known_blocks(weka))
    assert sorted(map(len, groups)) == sorted(len(names.split()) for names in GROUPS_OF_COPIES)
    report = lint_ids(weka)
    found = {finding.code: finding for finding in report.findings}
    assert (found["duplicate_sessions"].count, found["duplicate_sessions"].num_total) == (18, 710)
    assert (found["forks"].count, found["forks"].example[:9]) == (46, "12 groups")
    assert sum(share.miss_tokens for share in report.misses) == (
        report.before.input_tokens - report.before.hit_tokens
    )


def test_forked_sessions_of_weka(weka):
    groups = forked_sessions(weka, known_blocks(weka))
    assert (len(groups), sum(map(len, groups))) == (12, 46)


def test_turns_of_weka_that_drop_a_tenth_of_the_prompt_before(weka):
    rows = session_rows(weka)
    copies = {session for group in copied_sessions(weka, known_blocks(weka)) for session in group[1:]}
    distinct = np.sort(np.concatenate([each for session, each in enumerate(rows) if session not in copies]))
    trace = weka.only(distinct)
    assert len(rows) - len(copies) == 692
    turns = turns_of(trace, trace.session.astype(np.int64))
    assert round(100 * drops(trace, turns).mean(), 1) == 2.8


def test_the_clock_of_mooncake():
    found = {finding.code: finding for finding in lint_ids(sample_trace()).findings}
    assert found["coarse_clock"].count > 12_000
    assert found["coarse_clock"].example.startswith("1,180 different arrivals")


def test_lmcache_text_sample(shared):
    """Two runs of one agent: 1,163 tokens of instructions stand behind a task that is each run's own.

    By hand: the second run's first prompt repeats the first's from "</pr_description>" on. Turns only append.
    """
    path = shared / "traces/samples/lmcache_agent_text_miniswe.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(text) for text in file]
    prompts = [
        Prompt(
            place=f"sample:{number}",
            arrival_ms=row["timestamp"] // 1000,
            text=row["input"],
            session=row["session_id"],
        )
        for number, row in enumerate(rows, start=1)
    ]
    report = lint_text(lambda: iter(prompts), encode, BLOCK_TOKENS)
    (finding,) = report.findings
    assert (finding.code, finding.count, finding.between_sessions_requests) == ("private_text", 1, 1)
    starts = [min((row for row in rows if row["session_id"] == name), key=lambda row: row["timestamp"])
              for name in dict.fromkeys(row["session_id"] for row in rows)]  # fmt: skip
    tails = [row["input"][row["input"].index("</pr_description>") :] for row in starts]
    assert tails[0] == tails[1]
    assert abs(finding.lost_tokens - len(tails[0]) / 4) < BLOCK_TOKENS
    gained = finding.after.hit_tokens - finding.before.hit_tokens
    assert abs(gained - len(tails[0]) / 4) < 2 * BLOCK_TOKENS
