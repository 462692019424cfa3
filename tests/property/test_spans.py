"""Blocks of spans against a slow oracle that writes out every token."""

from hypothesis import given
from hypothesis import strategies as st

from warmset.trace.readers.spans import BlockCutter, Layout, Span, laid_out

Token = tuple[int, int]
"""Which content, and which of its tokens."""

spans = st.lists(st.builds(Span, st.integers(0, 2), st.integers(0, 9)), max_size=6)


@st.composite
def layouts(draw: st.DrawFn) -> list[Layout]:
    """Prompts, some of which go on from the start of an earlier one."""
    made = [laid_out(draw(spans))]
    for _ in range(draw(st.integers(0, 5))):
        base = draw(st.sampled_from([None, *made]))
        kept = None if base is None else draw(st.integers(0, base.tokens))
        made.append(laid_out(draw(spans), base, kept))
    return made


def tokens_of(layout: Layout) -> list[Token]:
    kept = tokens_of(layout.base)[: layout.kept_tokens] if layout.base else []
    return kept + [(span.content, place) for span in layout.spans for place in range(span.tokens)]


def blocks_of(tokens: list[Token], block_tokens: int) -> list[tuple[Token, ...]]:
    return [tuple(tokens[start : start + block_tokens]) for start in range(0, len(tokens), block_tokens)]


@given(layouts(), st.integers(1, 7))
def test_blocks_are_equal_where_their_tokens_are(prompts: list[Layout], block_tokens: int) -> None:
    cutter = BlockCutter(block_tokens)
    block_of_id: dict[int, tuple[Token, ...]] = {}
    id_of_block: dict[tuple[Token, ...], int] = {}
    for prompt in prompts:
        blocks = blocks_of(tokens_of(prompt), block_tokens)
        ids = cutter.ids(prompt).tolist()
        assert prompt.tokens == len(tokens_of(prompt))
        assert len(ids) == len(blocks)
        for identity, block in zip(ids, blocks, strict=True):
            assert block_of_id.setdefault(identity, block) == block
            assert id_of_block.setdefault(block, identity) == identity
