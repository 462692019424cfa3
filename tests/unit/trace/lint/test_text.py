"""Each cause in a conversation made by hand: how often, how deep, how much, and what mending it is worth.

A line is 64 characters: one block of 16 tokens. `RULES` is 9 lines, a turn adds an answer and a question of a
line each, so a prompt of turn k has 2k - 1 lines of history.
"""

from uuid import UUID

import pytest

from tests.support.lint_logs import (
    BLOCK_TOKENS,
    encode,
    line,
    lines,
    linted,
    log,
    only_finding,
    say,
    tool,
    turns,
)
from warmset.errors import InputError
from warmset.trace.lint import HitRate, lint_text

RULES = lines("rule", 9)
TWO_RULES = lines("rule", 2)
ALPHA, BETA, GAMMA = tool("alpha", 2), tool("beta", 2), tool("gamma", 2)
MEMORY = say("user", lines("memory", 4))


def with_system(*systems, **common):
    """Turn 1, 2, … of one conversation, each under its own system message."""
    return log(*([say("system", text), *turns(turn + 1)] for turn, text in enumerate(systems)), **common)


def flipped(value):
    return dict(reversed(value.items()))


# --- what changes by itself ------------------------------------------------------------------------

IDS = (UUID("1" * 32), UUID("2" * 32), UUID("3" * 32))
VOLATILE = {
    # 5 characters of the 640 go last: turn 2 shares 635 + 64 with turn 1 (10 blocks), turn 3 827 (12 blocks).
    # Parting after 18 characters, of the rest 621 of the system message and the history are sent again.
    "clock": (
        [f"Current time: 12:0{turn}" for turn in (1, 2, 3)],
        0,
        160 + 192,
        4,
        171 + 203,
        "a time of day",
    ),
    "counter": ([f"Turn {turn}" for turn in (1, 2, 3)], 0, 160 + 192, 1, 174 + 206, "a number"),
    "request_id": ([f"Trace {each}" for each in IDS], 0, 160 + 192, 1, 165 + 197, "a UUID"),
    # Turn 3 has the switch of turn 1 again and hits its 11 blocks; of turn 2 it sends 2 blocks again, less
    # the 3 characters of the switch.
    "template_flags": (
        [f"Reasoning: {level}" for level in ("low", "max", "low")],
        176,
        160 + 192,
        2,
        172 + 31,
        "a reasoning or thinking switch",
    ),
}


@pytest.mark.parametrize("code", VOLATILE)
def test_text_that_changes_above_the_history(code):
    starts, hit_tokens, mended_tokens, depth_tokens, lost_tokens, kind = VOLATILE[code]
    report = linted(with_system(*(line(start) + RULES for start in starts)))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count, finding.num_total) == (code, "system", 2, 3)
    assert report.before == HitRate(16 * (11 + 13 + 15), hit_tokens)
    assert finding.after == report.after_all == HitRate(16 * (11 + 13 + 15), mended_tokens)
    assert (finding.depth_tokens, finding.lost_tokens) == (depth_tokens, lost_tokens)
    assert finding.confidence == "certain"
    assert finding.example.startswith("log:2: system message, character ")
    assert finding.example.endswith(kind)


def test_the_place_is_told_and_nothing_of_the_text():
    report = linted(with_system(*(RULES + line(f"Current time: 12:0{turn}") + RULES for turn in (1, 2))))
    finding = only_finding(report)
    assert finding.example == "log:2: system message, character 595: a time of day"
    assert (finding.depth_tokens, finding.depth_share) == (594 // 4, 594 / (19 * 64 + 3 * 64))


def test_a_clock_in_a_completion():
    texts = [
        line(f"Current time: 12:0{turn}") + RULES + "".join(each["content"] for each in turns(turn))
        for turn in (1, 2, 3)
    ]
    report = linted(log(*texts))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("clock", "prompt", 2)
    assert report.before.hit_tokens == 0
    assert report.after_all == HitRate(624, 160 + 192)


def test_a_clock_in_a_tool_definition():
    tools = [tool("alpha", 2, title=f"as of 12:0{turn}") for turn in (1, 2, 3)]
    report = linted(with_system(*[TWO_RULES] * 3, tools=tuple([each, BETA] for each in tools)))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.confidence) == ("clock", "tools", "certain")
    assert report.before.hit_tokens == 2 * 3 * 16  # the title is in the second block of the tool
    # "12:01" becomes "0": 4 characters less before what follows.
    assert report.after_all.hit_tokens == 16 * ((7 * 64 - 4) // 64 + (9 * 64 - 4) // 64)


def test_stamps_that_are_rendered_anew_in_the_history():
    def stamped(turn):
        return [
            say(
                each["role"], (f"[{turn}0 minutes ago]\n" if each["role"] == "user" else "") + each["content"]
            )
            for each in turns(turn)
        ]

    report = linted(log(*([say("system", RULES), *stamped(turn)] for turn in (1, 2, 3))))
    finding = only_finding(report)
    assert (finding.code, finding.role) == ("clock", "user")
    assert finding.fix == "every message left as and where it was sent first"
    # Stamps are 17 characters. Turn 1: 576 + 81 characters, each turn 64 + 81 more.
    assert report.before.hit_tokens == 2 * 9 * 16
    assert report.after_all.hit_tokens == 16 * (657 // 64 + 802 // 64)


# --- tools and JSON --------------------------------------------------------------------------------


def test_tools_in_changing_order():
    report = linted(with_system(*[TWO_RULES] * 3, tools=([ALPHA, BETA], [BETA, ALPHA], [ALPHA, BETA])))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("tool_order", "tools", 2)
    # 7, 9 and 11 blocks; turn 2 hits the rules alone, turn 3 all of turn 1.
    assert report.before == HitRate(16 * 27, 16 * (2 + 7))
    assert finding.after == HitRate(16 * 27, 16 * (7 + 9))
    # Names part after 39 characters of JSON: of 5 blocks 281 characters are sent again, and then 2 blocks.
    assert finding.lost_tokens == 70 + 32
    assert finding.confidence == "certain"


def test_json_keys_of_a_tool_in_changing_order():
    report = linted(
        with_system(*[TWO_RULES] * 3, tools=([ALPHA, BETA], [ALPHA, flipped(BETA)], [ALPHA, BETA]))
    )
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("json_key_order", "tools", 2)
    assert report.before == HitRate(16 * 27, 16 * (4 + 7))
    assert finding.after == HitRate(16 * 27, 16 * (7 + 9))
    assert finding.lost_tokens == (126 + 64) // 4 + 32


def test_json_keys_inside_a_system_message():
    values = (
        '{"city": "Oslo", "unit": "C"}',
        '{"unit": "C", "city": "Oslo"}',
        '{"city": "Oslo", "unit": "C"}',
    )
    report = linted(with_system(*(line(value) + RULES for value in values)))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.confidence) == ("json_key_order", "system", "certain")
    assert report.before.hit_tokens == 11 * 16
    assert finding.after == HitRate(624, 16 * (11 + 13))


def test_tools_that_come_and_go():
    report = linted(with_system(*[TWO_RULES] * 3, tools=([ALPHA, BETA], [GAMMA, ALPHA, BETA], [ALPHA, BETA])))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("tool_set", "tools", 2)
    assert report.before == HitRate(16 * 29, 16 * (2 + 7))
    assert finding.after == HitRate(16 * 29, 16 * (7 + 9))
    assert finding.lost_tokens == 5 * 16 + 2 * 16
    assert finding.example.endswith("2 tools before, 3 now")


def test_a_second_system_message_is_no_matter_of_tools():
    more = [say("system", TWO_RULES), say("system", lines("note", 1))]
    report = linted(log([more[0], *turns(1)], [*more, *turns(2)], tools=[ALPHA, BETA]))
    finding = only_finding(report)
    assert (finding.code, finding.role) == ("system_edited", "system")
    assert report.after_all.hit_tokens == 7 * 16


# --- history ---------------------------------------------------------------------------------------


def test_a_memory_block_that_moves_with_each_turn():
    def remembering(turn):
        *earlier, newest = turns(turn)
        return [say("system", TWO_RULES), *earlier, MEMORY, newest]

    report = linted(log(*(remembering(turn) for turn in (1, 2, 3))))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("memory_block", "history", 2)
    assert report.before == HitRate(16 * 27, 16 * (2 + 4))
    assert finding.after == HitRate(16 * 27, 16 * (3 + 5))  # behind the newest question
    assert (finding.depth_tokens, finding.lost_tokens) == (2 * 16, 2 * 5 * 16)


def test_a_memory_block_with_other_text_each_time():
    def remembering(turn):
        return [say("system", TWO_RULES), say("user", lines(f"memory {'abc'[turn]}", 4)), *turns(turn)]

    report = linted(log(*(remembering(turn) for turn in (1, 2))))
    finding = only_finding(report)
    assert finding.code == "memory_block"
    assert report.before.hit_tokens == 2 * 16
    assert finding.after.hit_tokens == 3 * 16


def test_a_block_that_moves_inside_a_completion():
    def remembering(turn):
        *earlier, newest = (each["content"] for each in turns(turn))
        return RULES + "".join(earlier) + lines("memory", 3) + newest

    report = linted(log(*(remembering(turn) for turn in (1, 2, 3))))
    finding = only_finding(report)
    assert (finding.code, finding.role) == ("memory_block", "prompt")
    assert report.before == HitRate(16 * 45, 16 * (9 + 11))
    assert finding.after == HitRate(16 * 45, 16 * (10 + 12))


def test_a_message_that_moves_to_the_end_of_each_prompt():
    report = linted(log(*([say("system", TWO_RULES), *turns(turn), MEMORY] for turn in (1, 2, 3))))
    finding = only_finding(report)
    assert (finding.code, finding.count) == ("carrier", 2)
    assert report.before == HitRate(16 * 27, 16 * (3 + 5))
    assert finding.after == HitRate(16 * 27, 16 * (7 + 9))  # it stays behind the first question
    assert (finding.depth_tokens, finding.lost_tokens) == (3 * 16, 2 * 4 * 16)


def test_a_tool_result_that_is_cut_two_turns_later():
    def calls(count):
        messages = [say("system", RULES)]
        for number in range(count):
            name = "abc"[number]
            messages += [
                say("user", lines(f"ask {name}", 1)),
                say("assistant", "", tool_calls=[{"id": "x"}]),  # 12 characters
                say("tool", lines(f"result {name}", 4 if count - number <= 2 else 2)),
            ]
        return messages

    report = linted(log(*(calls(count) for count in (1, 2, 3))))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("tool_result_cut", "tool", 1)
    # 908, 1240 and 1444 characters; the third keeps 780 of the second, and repeats 332 behind.
    assert report.before == HitRate(227 + 310 + 361, 16 * (908 // 64 + 780 // 64))
    assert finding.after == HitRate(227 + 310 + 393, 16 * (908 // 64 + 1240 // 64))
    assert (finding.depth_tokens, finding.lost_tokens) == (780 // 4, 332 // 4)


def test_reasoning_that_is_left_out_later():
    def steps(count):
        messages = [say("system", RULES)]
        for number in range(count):
            name = "abc"[number]
            thought = {"reasoning_content": lines(f"thought {name}", 2)} if number == count - 1 else {}
            messages += [
                say("user", lines(f"ask {name}", 1)),
                say("assistant", lines(f"answer {name}", 1), **thought),  # a line end stands between
                say("tool", lines(f"result {name}", 1)),
            ]
        return messages

    report = linted(log(*(steps(count) for count in (1, 2, 3))))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("thinking_stripped", "assistant", 2)
    assert report.before == HitRate(225 + 273 + 321, 16 * (704 // 64 + 896 // 64))
    assert finding.after == HitRate(225 + 305 + 385, 16 * (897 // 64 + 1218 // 64))
    assert finding.lost_tokens == 2 * 16


def test_reasoning_that_is_left_out_of_a_completion():
    thought = f"<think>\n{lines('thought', 2)}</think>\n"
    first = RULES + thought + lines("answer", 3)
    report = linted(log(first, RULES + lines("answer", 3) + lines("more", 2)))
    finding = only_finding(report)
    assert (finding.code, finding.role) == ("thinking_stripped", "prompt")
    assert report.before.hit_tokens == 9 * 16
    assert finding.after.hit_tokens == 12 * 16


def test_oldest_messages_dropped_with_each_turn():
    report = linted(log(*([say("system", RULES), *turns(turn)[-7:]] for turn in (4, 5, 6, 7))))
    finding = only_finding(report)
    assert (finding.code, finding.count, finding.after) == ("history_trimmed", 3, None)
    assert report.before == HitRate(4 * 16 * 16, 3 * 9 * 16)
    assert finding.lost_tokens == 3 * ((5 * 64 - 9) // 4)  # 5 messages stay; 9 characters are "question "
    assert report.after_all is None
    assert {share.code: share.miss_tokens for share in report.misses} == {
        "new_text": 1024 - 432 - 231,
        "unmended": 231,
    }


def test_a_compaction_is_named_and_not_mended():
    report = linted(
        log(
            [say("system", RULES), *turns(6)],
            [say("system", RULES), say("user", lines("summary", 1)), *turns(6)[-2:]],
        )
    )
    finding = only_finding(report)
    assert (finding.code, finding.count, finding.gain_ratio) == ("compaction", 1, None)


# --- system prompts, models, sessions --------------------------------------------------------------


def test_a_system_prompt_that_is_edited_in_mid_session():
    systems = [RULES + lines("note", count) + lines("end", 2) for count in (1, 2, 3)]
    report = linted(with_system(*systems))
    finding = only_finding(report)
    assert (finding.code, finding.role, finding.count) == ("system_edited", "system", 2)
    assert report.before == HitRate(16 * (13 + 16 + 19), 16 * (10 + 11))
    # The first note never changed and stays; the second and third go last.
    assert finding.after == HitRate(16 * (13 + 16 + 19), 16 * (13 + 15))
    assert finding.lost_tokens == 16 * (3 + 5)


def test_a_completion_that_is_edited():
    texts = [
        RULES + lines("note", turn) + lines("end", 3) + "".join(each["content"] for each in turns(turn))
        for turn in (1, 2, 3)
    ]
    report = linted(log(*texts))
    finding = only_finding(report)
    assert (finding.code, finding.role) == ("text_edited", "prompt")
    assert report.before == HitRate(16 * 51, 16 * (10 + 11))
    assert finding.after == HitRate(16 * 51, 16 * (14 + 16))


def test_line_ends_that_change():
    report = linted(with_system(RULES, RULES.replace("\n", "\r\n"), RULES))
    finding = only_finding(report)
    assert (finding.code, finding.count, finding.confidence) == ("whitespace", 1, "certain")
    # 640, 777 and 896 characters; normalised, the rules have 575, as white space at their end goes.
    assert report.before == HitRate(160 + 195 + 224, 160)
    assert finding.after == HitRate(160 + 192 + 224, 16 * (639 // 64 + 767 // 64))


def test_a_composed_and_a_decomposed_letter():
    texts = [f"Caf{letter} rules\n{RULES}" for letter in ("\u00e9", "e\u0301")]
    assert only_finding(linted(with_system(*texts))).code == "whitespace"


def test_a_model_that_changes_in_mid_session():
    report = linted(with_system(*[RULES] * 3, model=("small", "large", "small")))
    finding = only_finding(report)
    assert (finding.code, finding.count) == ("model_change", 2)
    assert report.before == HitRate(16 * (10 + 12 + 14), 160)
    assert finding.after == HitRate(16 * (10 + 12 + 14), 160 + 192)
    assert finding.lost_tokens == 160 + 32


def test_text_of_a_session_above_shared_tools():
    people = ("ann", "bob", "cleo")
    prompts = [
        [
            say("system", line(f"You help {name}, in /home/{name}") + RULES),
            say("user", lines(f"hello {name}", 1)),
        ]
        for name in people
    ]
    report = linted(log(*prompts, session=(1, 2, 3), tools=[ALPHA, BETA]))
    finding = only_finding(report)
    assert (finding.code, finding.count, finding.between_sessions_requests) == ("private_text", 2, 2)
    assert report.before == HitRate(3 * 15 * 16, 0)
    # Rules and tools come first: 13 blocks, and "You help ".
    assert finding.after == HitRate(3 * 15 * 16, 2 * 13 * 16)
    # The ends of the private lines are dots: 38 characters are the same, 36 for the longer name.
    assert finding.lost_tokens == (38 + 576 + 256) // 4 + (36 + 576 + 256) // 4


def test_a_clock_above_tools_between_sessions():
    prompts = [
        [say("system", RULES + line(f"Current time: 12:0{turn}")), say("user", lines(f"hello {turn}", 1))]
        for turn in (1, 2, 3)
    ]
    report = linted(log(*prompts, session=(1, 2, 3), tools=[ALPHA, BETA]))
    finding = only_finding(report)
    assert (finding.code, finding.between_sessions_requests) == ("clock", 2)
    assert report.before == HitRate(3 * 15 * 16, 2 * 9 * 16)
    assert finding.after.hit_tokens == 2 * 14 * 16  # 635 + 256 characters, and "hello "


# --- mixtures --------------------------------------------------------------------------------------


def test_a_break_behind_another_one_is_found_and_gains_only_with_it():
    systems = [line(f"Current time: 12:0{turn}") + RULES for turn in (1, 2, 3, 4)]
    tools = tuple([ALPHA, BETA] if turn % 2 else [BETA, ALPHA] for turn in range(4))
    report = linted(with_system(*systems, tools=tools))
    clock, order = report.findings
    assert (clock.code, clock.count, clock.behind_requests) == ("clock", 3, 0)
    assert (order.code, order.count, order.behind_requests) == ("tool_order", 3, 3)
    total = 16 * (15 + 17 + 19 + 21)
    assert report.before == HitRate(total, 0)
    # With only the clock last: turn 2 shares 635 characters and 39 of a tool; turns 3 and 4 have the tools of
    # two turns before: 635 + 256 + 64 and 635 + 256 + 192 characters.
    assert clock.after == HitRate(total, 16 * (674 // 64 + 955 // 64 + 1083 // 64))
    assert order.after == HitRate(total, 0)
    assert report.after_all == HitRate(total, 16 * (955 // 64 + 1083 // 64 + 1211 // 64))


def test_misses_add_up():
    systems = [line(f"Current time: 12:0{turn}") + RULES for turn in (1, 2, 3)]
    report = linted(with_system(*systems))
    shares = {share.code: share.miss_tokens for share in report.misses}
    assert sum(shares.values()) == 624
    assert shares["mended"] == 352
    assert shares["new_text"] == 624 - 374  # all but what was sent again
    assert report.unexplained_share == pytest.approx(1 - 352 / 624)


# --- nothing to find -------------------------------------------------------------------------------

CLEAN = {
    "a date that stays": with_system(*[line("Date: 2026-11-30") + RULES] * 4, tools=[ALPHA, BETA]),
    "times in new questions": log(
        *(
            [say("system", RULES)] + [say("user", line(f"[12:0{number}] and now")) for number in range(count)]
            for count in (1, 2, 3, 4)
        )
    ),
    "one-shot prompts of two applications": log(
        [say("system", lines("cook", 9)), *turns(1)],
        [say("system", lines("sail", 9)), *turns(1)],
        session=(1, 2),
    ),
    "a helper between the turns": log(
        [say("system", RULES), *turns(1)],
        [say("system", lines("title", 3)), say("user", lines("name this", 1))],
        [say("system", RULES), *turns(2)],
        [say("system", lines("title", 3)), say("user", lines("name that", 1))],
        [say("system", RULES), *turns(3)],
    ),
    "the same prompt again": log(*[[say("system", RULES), *turns(2)]] * 3),
    "a shorter prompt that is the start of the one before": log(
        [say("system", RULES), *turns(3)], [say("system", RULES), *turns(1)]
    ),
    "questions after shared instructions": log(
        *([say("system", RULES), say("user", lines(f"question {name}", 2))] for name in "abcd"),
        session=(1, 2, 3, 4),
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_no_finding_where_nothing_breaks(name):
    report = linted(CLEAN[name])
    assert report.findings == ()
    assert report.after_all is None
    assert [share.code for share in report.misses] == ["new_text"]


def test_a_change_of_less_than_a_block_is_no_break():
    short = [[say("user", f"[12:0{turn}] hello there, and so on")] for turn in (1, 2, 3)]
    assert linted(log(*short)).findings == ()


# --- reading ---------------------------------------------------------------------------------------


def test_rows_out_of_order_give_the_same_report():
    prompts = with_system(*(line(f"Current time: 12:0{turn}") + RULES for turn in (1, 2, 3)))
    sorted_report = linted(prompts)
    shuffled_report = linted([prompts[2], prompts[0], prompts[1]])
    assert shuffled_report.findings == sorted_report.findings
    assert shuffled_report.after_all == sorted_report.after_all


def test_conversations_without_a_session_are_told_by_their_first_message():
    prompts = with_system(*(line(f"Current time: 12:0{turn}") + RULES for turn in (1, 2, 3)), session=None)
    finding = only_finding(linted(prompts))
    assert (finding.code, finding.count, finding.between_sessions_requests) == ("clock", 2, 0)


def test_a_log_that_changes_while_it_is_read():
    prompts = with_system(RULES, RULES, RULES)
    passes = [prompts, prompts[:2]]
    with pytest.raises(InputError, match="changed while it was read"):
        lint_text(lambda: iter(passes.pop(0)), encode, BLOCK_TOKENS)


def test_tokens_of_the_server_are_kept():
    """The server counts 3 tokens where the text has 4: all numbers shrink alike."""
    systems = [line(f"Current time: 12:0{turn}") + RULES for turn in (1, 2, 3)]
    prompts = with_system(*systems, input_tokens=(132, 156, 180))

    def counted(prompt):
        ids, tokens = encode(prompt)
        return ids, prompt.input_tokens or tokens

    report = lint_text(lambda: iter(prompts), counted, 12)
    assert report.before == HitRate(468, 0)
    assert report.after_all == HitRate(468, 12 * (10 + 12))


def test_no_prompts():
    with pytest.raises(ValueError, match="no requests"):
        linted([])
