"""Block ids of prompts, held against lists of tokens written out."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from warmset.trace.synth.prompts import Prompt, Span, Texts


def written_out(spans):
    return [number for span in spans for number in range(span.first, span.first + span.tokens)]


def blocks_of(spans, block_tokens):
    tokens = written_out(spans)
    whole = len(tokens) // block_tokens
    return [tuple(tokens[block_tokens * place : block_tokens * (place + 1)]) for place in range(whole)]


def laid(spans, block_tokens=4):
    prompt = Prompt(block_tokens)
    for span in spans:
        prompt.lay(span)
    return prompt


SPANS = st.lists(st.builds(Span, st.integers(0, 40), st.integers(0, 20)), max_size=8)


@given(st.lists(SPANS, min_size=1, max_size=6), st.integers(1, 7))
def test_equal_blocks_have_equal_ids_and_others_differ(prompts, block_tokens):
    name = {}
    for spans in prompts:
        ids = laid(spans, block_tokens).ids.tolist()
        blocks = blocks_of(spans, block_tokens)
        assert len(ids) == len(blocks)
        assert all(
            name.setdefault(block, identity) == identity for block, identity in zip(blocks, ids, strict=True)
        )
    assert len(set(name.values())) == len(name)


@given(SPANS, st.integers(1, 7))
def test_laying_at_once_is_laying_one_by_one(spans, block_tokens):
    at_once = Prompt(block_tokens)
    at_once.lay_all(spans)
    one_by_one = laid(spans, block_tokens)
    assert at_once.ids.tolist() == one_by_one.ids.tolist()
    assert (at_once.tokens, at_once.spans) == (one_by_one.tokens, one_by_one.spans)


@given(SPANS, SPANS, SPANS)
def test_rewinding_leaves_no_trace(head, gone, tail):
    prompt = laid(head)
    mark = prompt.mark()
    prompt.lay_all(gone)
    assert prompt.rewind(mark) == gone
    prompt.lay_all(tail)
    assert prompt.ids.tolist() == laid([*head, *tail]).ids.tolist()


def test_a_fork_goes_its_own_way():
    prompt = laid([Span(0, 8)])
    twin = prompt.fork()
    prompt.lay(Span(100, 4))
    twin.lay(Span(200, 4))
    assert prompt.ids.tolist() == [0, 4, 100]
    assert twin.ids.tolist() == [0, 4, 200]


def test_a_long_prompt_outgrows_its_first_room():
    assert laid([Span(0, 40_000)]).ids.tolist() == list(range(0, 40_000, 4))


def test_kept_tokens_are_those_before_the_deepest_cut():
    prompt = laid([Span(0, 8)])
    mark = prompt.mark()
    prompt.lay(Span(8, 8))
    prompt.keep()
    prompt.lay(Span(16, 4))
    assert prompt.kept_tokens == 16
    prompt.rewind(mark)
    prompt.lay(Span(50, 30))
    assert prompt.kept_tokens == 8


def test_texts_share_nothing():
    texts = Texts()
    spans = [texts.new(tokens) for tokens in (5, 0, 7)]
    assert all(one.first + one.tokens <= other.first for one, other in pairwise(spans))
