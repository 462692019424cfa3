import math
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import BPE

from warmset.trace.encode import CharacterEncoder, Encoded, TokenizerEncoder, plain_text
from warmset.trace.prompt import Prompt
from warmset.trace.tally import Tally

ROLES = ("system", "user", "assistant", "tool")
TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}[end]{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
LETTERS = "abc \n中é"
messages = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(ROLES),
        st.text(LETTERS, max_size=40),
    ),
    min_size=1,
    max_size=6,
)
figures = st.floats(0.3, 9).map(lambda figure: round(figure, 2))


def prompt(sent) -> Prompt:
    return Prompt(place="log:1", arrival_ms=0, messages=sent)


def shared(first: Encoded, second: Encoded) -> int:
    """Leading blocks that two prompts share."""
    pairs = zip(first.ids, second.ids, strict=False)
    return next(
        (count for count, (one, other) in enumerate(pairs) if one != other),
        min(len(first.ids), len(second.ids)),
    )


@given(messages, messages, figures, st.integers(4, 20))
def test_a_prompt_that_goes_on_shares_all_full_blocks_by_characters(
    start, more, chars_per_token, block_tokens
):
    encoder = CharacterEncoder(chars_per_token, block_tokens, b"k")
    first, second = encoder.encode(prompt(start)), encoder.encode(prompt(start + more))
    # A system message after another one would be moved to the front of what follows it: not the same start.
    if plain_text(prompt(start + more)).startswith(plain_text(prompt(start))):
        assert shared(first, second) >= math.floor(
            len(plain_text(prompt(start))) / (chars_per_token * block_tokens) - 1e-9
        )


@given(st.text(LETTERS, max_size=200), figures, st.integers(4, 20))
def test_every_character_is_in_one_block(text, chars_per_token, block_tokens):
    encoder = CharacterEncoder(chars_per_token, block_tokens, b"k")
    encoded = encoder.encode(Prompt(place="", arrival_ms=0, text=text))
    assert encoded.ids.size == math.ceil(encoded.text_tokens / block_tokens)
    blocks = list(encoder._blocks(text))
    assert b"".join(blocks).decode() == text
    sizes = [len(block.decode()) for block in blocks]
    widest = chars_per_token * block_tokens
    assert all(abs(size - widest) <= 1 for size in sizes[:-1])
    assert not sizes or 0 < sizes[-1] <= widest + 1


@given(messages, messages, st.integers(1, 5))
def test_a_prompt_that_goes_on_shares_all_full_blocks_by_a_tokenizer(start, more, block_tokens):
    """Without merges each token ends where the text before it does, so all full blocks must be shared."""
    if more[0]["role"] != "assistant":
        more = [{"role": "assistant", "content": ""}, *more]
    with TemporaryDirectory() as folder:
        encoder = TokenizerEncoder(_model_folder(Path(folder)), block_tokens, b"k", Tally())
        first, second = encoder.encode(prompt(start)), encoder.encode(prompt(start + more))
    assert shared(first, second) >= first.text_tokens // block_tokens


@given(st.lists(st.text(LETTERS, max_size=30), min_size=2, max_size=5))
def test_different_texts_have_different_ids(texts):
    encoder = CharacterEncoder(1, 4, b"k")
    for one, other in pairwise(texts):
        ids = [
            encoder.encode(Prompt(place="", arrival_ms=0, text=text)).ids.tolist() for text in (one, other)
        ]
        assert (ids[0] == ids[1]) == (one == other)


def _model_folder(folder: Path) -> Path:
    letters = sorted(set(TEMPLATE + LETTERS + "".join(ROLES)))
    tokenizer = Tokenizer(BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder
