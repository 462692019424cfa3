import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.processors import TemplateProcessing

from warmset.errors import InputError
from warmset.trace.encode import CharacterEncoder, TokenizerEncoder, block_ids, plain_text
from warmset.trace.prompt import Prompt
from warmset.trace.tally import Tally

KEY = b"secret"
WORDS = ("[UNK]", "<s>", "<user>", "<assistant>", "<system>", "</s>", "a", "b", "c", "d", "e", "f")
TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}> {{ message.content }} </s> {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def completion(text: str, **known) -> Prompt:
    return Prompt(place="log:1", arrival_ms=0, text=text, **known)


def chat(*contents: str, **known) -> Prompt:
    roles = ("user", "assistant")
    messages = [{"role": roles[turn % 2], "content": text} for turn, text in enumerate(contents)]
    return Prompt(place="log:1", arrival_ms=0, messages=messages, **known)


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A folder with a tokenizer of words, which adds `<s>` where special tokens are asked for."""
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


# --- characters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "chars_per_token", "num_blocks", "tokens"),
    [
        ("", 4, 0, 0),
        ("x", 4, 1, 1),
        ("x" * 16, 4, 1, 4),  # a block of 4 tokens is 16 characters
        ("x" * 17, 4, 2, 5),
        ("x" * 40, 2.5, 4, 16),  # 10 characters a block
        ("x" * 41, 2.5, 5, 17),
    ],
)
def test_characters_are_counted_up_to_whole_tokens_and_blocks(text, chars_per_token, num_blocks, tokens):
    encoded = CharacterEncoder(chars_per_token, 4, KEY).encode(completion(text))
    assert (encoded.ids.size, encoded.input_tokens, encoded.text_tokens) == (num_blocks, tokens, tokens)


def test_block_ends_do_not_drift():
    # 16 tokens at 3.92 characters are 62.72 characters: block 25 ends at 1568 exactly, and block 1 at 62.
    text = "".join(chr(0x4E00 + position) for position in range(2000))
    ids = CharacterEncoder(3.92, 16, KEY).encode(completion(text)).ids
    ends = [math.floor(block * Fraction(6272, 100)) for block in range(32)]
    assert (ends[1], ends[25]) == (62, 1568)
    expected = [text[start:end].encode() for start, end in pairwise(ends)]
    expected.append(text[ends[31] :].encode())
    assert ids.tolist() == block_ids(iter(expected), KEY).tolist()


def test_equal_blocks_have_equal_ids_wherever_they_stand():
    ids = CharacterEncoder(1, 4, KEY).encode(completion("abcdWXYZabcd")).ids
    assert ids[0] == ids[2] != ids[1]


def test_ids_depend_on_the_key_and_not_on_its_length():
    keys = (b"", b"a", b"b", b"b" * 200)
    found = {CharacterEncoder(1, 4, key).encode(completion("abcd")).ids.item() for key in keys}
    assert len(found) == len(keys)


def test_usage_wins_over_what_the_text_comes_to():
    encoded = CharacterEncoder(1, 4, KEY).encode(completion("abcdefgh", input_tokens=5))
    assert (encoded.input_tokens, encoded.text_tokens, encoded.ids.size) == (5, 8, 2)


def test_blocks_of_less_than_a_character_are_refused():
    with pytest.raises(InputError, match=r"--chars-per-token 0\.1: a block of 4 tokens would hold less than"):
        CharacterEncoder(0.1, 4, KEY)


def test_plain_text_puts_leading_system_messages_and_tools_first():
    prompt = Prompt(
        place="log:1",
        arrival_ms=0,
        messages=[{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
        tools=[{"name": "t"}],
    )
    assert plain_text(prompt) == 'system\nS\ntools\n{"name":"t"}\nuser\nU\n'


# --- a tokenizer -----------------------------------------------------------------------------------


def test_without_a_template_messages_are_joined(model_folder: Path):
    encoder = TokenizerEncoder(model_folder, 2, KEY, Tally())
    assert not encoder.has_template
    # "user\na b\n": three words, one of them unknown
    assert encoder.encode(chat("a b")).text_tokens == 3


def test_a_completion_gets_the_special_tokens_of_the_tokenizer(model_folder: Path):
    encoded = TokenizerEncoder(model_folder / "tokenizer.json", 2, KEY, Tally()).encode(completion("a b c"))
    assert (encoded.text_tokens, encoded.ids.size) == (4, 2)


def test_a_chat_gets_only_the_special_tokens_of_its_template(model_folder: Path):
    (model_folder / "chat_template.jinja").write_text(TEMPLATE)
    encoder = TokenizerEncoder(model_folder, 4, KEY, Tally())
    assert encoder.has_template
    # <user> a b </s> <assistant>
    encoded = encoder.encode(chat("a b"))
    assert (encoded.text_tokens, encoded.ids.size) == (5, 2)
    # <user> a b </s> <assistant> c </s> <user> d </s> <assistant>
    longer = encoder.encode(chat("a b", "c", "d"))
    assert (longer.text_tokens, longer.ids.size) == (11, 3)
    assert longer.ids[0] == encoded.ids[0]


def test_the_template_beside_a_tokenizer_file_is_used(model_folder: Path):
    (model_folder / "chat_template.jinja").write_text(TEMPLATE)
    assert TokenizerEncoder(model_folder / "tokenizer.json", 4, KEY, Tally()).has_template


def test_answers_are_counted_without_special_tokens(model_folder: Path):
    assert TokenizerEncoder(model_folder, 2, KEY, Tally()).count_tokens("a b c") == 3


def test_a_tokenizer_that_truncates_or_pads_does_not_here(model_folder: Path):
    file = model_folder / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=10)
    tokenizer.save(str(file))
    assert TokenizerEncoder(file, 2, KEY, Tally()).count_tokens("a b c d") == 4


def test_a_prompt_that_the_template_refuses_is_taken_plain_and_counted(model_folder: Path):
    (model_folder / "chat_template.jinja").write_text("{{ raise_exception(messages[0].content) }}")
    tally = Tally()
    encoded = TokenizerEncoder(model_folder, 2, KEY, tally).encode(chat("a b"))
    assert encoded.text_tokens == 3
    (finding,) = tally.findings()
    assert (finding.code, finding.count) == ("template_failed", 1)
    assert finding.first_example == (
        "log:1: the chat template refuses it (TemplateError); its messages were joined plainly"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file"),
        (b"{}", "is no tokenizer.json"),
        (b"\x00", "is no tokenizer.json"),
    ],
)
def test_what_is_no_tokenizer_is_refused(tmp_path: Path, content, message):
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        TokenizerEncoder(tmp_path, 2, KEY, Tally())
