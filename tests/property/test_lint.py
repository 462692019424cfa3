"""What must hold of a lint whatever the conversation."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.lint_logs import LINE, encode, line, lines, linted, log, say, tool
from warmset.trace.lint.kept import KEPT_CODES, kept_history
from warmset.trace.prompt import pieces

TOOLS = [tool(name, blocks) for name, blocks in (("alpha", 1), ("beta", 2), ("gamma", 1), ("delta", 3))]
roles = st.sampled_from(["user", "assistant", "tool"])
texts = st.sampled_from([lines(name, count) for name in ("ask", "tell", "note") for count in (1, 2, 4)])
messages = st.lists(st.builds(say, roles, texts), min_size=1, max_size=5)


@st.composite
def conversations(draw, max_turns=4):
    """Prompts of one or two sessions that mostly append, and now and then change what was there."""
    prompts = []
    for session in range(draw(st.integers(1, 2))):
        history = []
        for _ in range(draw(st.integers(1, max_turns))):
            history = [*history, *draw(messages)]
            if draw(st.booleans()) and len(history) > 2:
                place = draw(st.integers(0, len(history) - 1))
                history = [*history[:place], *draw(messages), *history[place + draw(st.integers(0, 1)) :]]
            stamp = line(f"Current time: 12:0{draw(st.integers(0, 2))}")
            prompts.append((session, [say("system", stamp + lines("rule", 3)), *history]))
    tools = tuple(draw(st.permutations(TOOLS)) for _ in prompts)
    return log(*(sent for _, sent in prompts), session=tuple(session for session, _ in prompts), tools=tools)


@given(conversations())
@settings(max_examples=60)
def test_counts_hold_together(prompts):
    report = linted(prompts)
    missed = report.before.input_tokens - report.before.hit_tokens
    assert sum(share.miss_tokens for share in report.misses) == missed
    assert all(share.miss_tokens > 0 for share in report.misses)
    assert report.before.input_tokens == sum(encode(prompt)[1] for prompt in prompts)
    for finding in report.findings:
        assert 0 < finding.count <= finding.num_total == len(prompts)
        assert finding.behind_requests <= finding.count
        assert 0 <= finding.depth_share < 1
        if finding.after is not None:
            assert 0 <= finding.after.hit_tokens <= finding.after.input_tokens
    gains = [finding.gain_ratio or 0 for finding in report.findings]
    assert gains == sorted(gains, reverse=True)


@given(st.lists(st.permutations(TOOLS), min_size=2, max_size=6))
def test_sorting_tools_never_costs_where_only_their_order_differs(orders):
    history = [say("user", lines("ask", 1))]
    prompts = []
    for turn in range(len(orders)):
        history = [*history, say("assistant", lines(f"answer {'abcdef'[turn]}", 1))]
        prompts.append([say("system", lines("rule", 2)), *history])
    report = linted(log(*prompts, tools=tuple(orders)))
    assert {finding.code for finding in report.findings} <= {"tool_order"}
    blocks = [encode(prompt)[1] // 16 for prompt in log(*prompts, tools=tuple(orders))]
    perfect = 16 * sum(blocks[:-1])
    assert report.before.hit_tokens <= perfect
    if report.findings:
        assert report.findings[0].gain_ratio >= 0
        assert report.after_all.hit_tokens == perfect


@given(st.lists(st.tuples(st.integers(0, 23), st.integers(0, 59)), min_size=2, max_size=6))
def test_a_clock_never_costs_once_it_goes_last(times):
    history = [say("user", lines("ask", 1))]
    prompts = []
    for turn, (hour, minute) in enumerate(times):
        history = [*history, say("assistant", lines(f"answer {'abcdef'[turn]}", 1))]
        prompts.append([say("system", line(f"Now {hour:02d}:{minute:02d}") + lines("rule", 4)), *history])
    report = linted(log(*prompts))
    if len(set(times)) == 1:
        assert report.findings == ()
    for finding in report.findings:
        assert finding.code == "clock"
        assert finding.gain_ratio >= 0


@given(st.lists(messages, min_size=1, max_size=5))
def test_history_that_only_grows_is_kept_as_it_is(parts):
    kept = None
    history = []
    for part in parts:
        history = [*history, *part]
        prompt = log(history)[0]
        same, kept = kept_history(kept, prompt, KEPT_CODES)
        assert same is prompt


@given(messages, messages, messages)
def test_kept_history_has_as_many_messages_as_were_sent(first, second, third):
    sent = log([*first, *second])[0]
    cut = [
        say(each["role"], each["content"][: len(each["content"]) - LINE] or each["content"]) for each in first
    ]
    later = replace(sent, messages=[*cut, *second, *third])
    _, kept = kept_history(None, sent, KEPT_CODES)
    changed, _ = kept_history(kept, later, KEPT_CODES)
    assert len(list(pieces(changed))) == len(list(pieces(later)))
