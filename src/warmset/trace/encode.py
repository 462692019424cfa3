"""From the text of a prompt to the ids of its blocks: what prompts share, and nothing of what they say.

The id of a block is a keyed hash of what the block holds, so it is a content id: the builder chains it to
what stands before. Text is cut by a tokenizer, or by a stated number of characters for each token.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from warmset.errors import InputError
from warmset.trace.chat_template import ChatTemplate, TemplateFailedError, find_template
from warmset.trace.prompt import Prompt, pieces
from warmset.trace.tally import Tally

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Int64s = npt.NDArray[np.int64]

TOKENIZER_FILE = "tokenizer.json"
_ID_BYTES = 8
_TOKEN_BYTES = 4


class Encoded(NamedTuple):
    """A prompt without its text."""

    ids: Int64s
    """One for each run of `block_tokens` tokens, and one for what is left."""
    input_tokens: int
    """What the server counted, where the log says so; else `text_tokens`."""
    text_tokens: int
    """What the text comes to."""


class Encoder(Protocol):
    """Cuts text into blocks. Prompts of one encoder share ids where they share text."""

    def encode(self, prompt: Prompt) -> Encoded:
        """Ids and tokens of a prompt."""

    def count_tokens(self, text: str) -> int:
        """Tokens of an answer."""


def plain_text(prompt: Prompt) -> str:
    """A prompt as one text, without a chat template: each piece under a line with its role.

    A prompt that goes on from another one starts with all of its text.
    """
    if prompt.text is not None:
        return prompt.text
    return "".join(f"{piece.role}\n{piece.text}\n" for piece in pieces(prompt))


def block_ids(blocks: Iterator[bytes], key: bytes) -> Int64s:
    """Ids of blocks under the secret of an import; without it an id says nothing of what it stands for."""
    secret = hashlib.blake2b(key).digest()
    digests = [hashlib.blake2b(block, digest_size=_ID_BYTES, key=secret).digest() for block in blocks]
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


class CharacterEncoder:
    """Counts a token for every so many characters.

    Formula: block k ends after floor(k · block_tokens · chars_per_token) characters, so that a figure with
    decimals does not drift.
    """

    def __init__(self, chars_per_token: float, block_tokens: int, key: bytes) -> None:
        self._chars_per_token = Fraction(str(chars_per_token))
        self._chars_per_block = self._chars_per_token * block_tokens
        if self._chars_per_block < 1:
            raise InputError(
                f"--chars-per-token {chars_per_token}: a block of {block_tokens} tokens would hold less than "
                "a character: take larger blocks, or more characters a token"
            )
        self._key = key

    def encode(self, prompt: Prompt) -> Encoded:
        """Ids and tokens of a prompt."""
        text = plain_text(prompt)
        tokens = self.count_tokens(text)
        return Encoded(
            block_ids(self._blocks(text), self._key), _first_known(prompt.input_tokens, tokens), tokens
        )

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, a started one counted whole."""
        return math.ceil(len(text) / self._chars_per_token)

    def _blocks(self, text: str) -> Iterator[bytes]:
        above, below = self._chars_per_block.as_integer_ratio()
        start = 0
        for block in range(1, math.ceil(len(text) / self._chars_per_block) + 1):
            end = block * above // below
            yield text[start:end].encode("utf-8", "surrogatepass")
            start = end


class TokenizerEncoder:
    """Counts what a model's own tokenizer gives, of the prompt as the model's chat template renders it.

    `path` is a `tokenizer.json`, or a model folder that holds one; the chat template is looked for beside it.
    Source: transformers' `apply_chat_template`: special tokens come from the template. A completion has none,
    and the tokenizer adds its own, as engines do.

    Raises: InputError where the library or the file is not there, or the file is no tokenizer.
    """

    def __init__(self, path: Path, block_tokens: int, key: bytes, tally: Tally) -> None:
        file = path / TOKENIZER_FILE if path.is_dir() else path
        self._tokenizer = _load(file)
        self._template: ChatTemplate | None = find_template(file.parent)
        self._block_tokens = block_tokens
        self._key = key
        self._tally = tally

    @property
    def has_template(self) -> bool:
        """Whether messages are rendered as the model's server would."""
        return self._template is not None

    def encode(self, prompt: Prompt) -> Encoded:
        """Ids and tokens of a prompt; one that the template cannot render is taken plain, and counted."""
        tokens = self._tokens(self._rendered(prompt), with_special=prompt.text is not None)
        content = np.array(tokens, dtype="<u4").tobytes()
        size = self._block_tokens * _TOKEN_BYTES
        blocks = (content[start : start + size] for start in range(0, len(content), size))
        return Encoded(
            block_ids(blocks, self._key), _first_known(prompt.input_tokens, len(tokens)), len(tokens)
        )

    def count_tokens(self, text: str) -> int:
        """Tokens of a text, without special ones."""
        return len(self._tokens(text, with_special=False))

    def _rendered(self, prompt: Prompt) -> str:
        if self._template is None or prompt.text is not None:
            return plain_text(prompt)
        try:
            return self._template.render(prompt)
        except TemplateFailedError as error:
            self._tally.note("template_failed", f"{prompt.place}: {error}; its messages were joined plainly")
            return plain_text(prompt)

    def _tokens(self, text: str, *, with_special: bool) -> Sequence[int]:
        tokens: Sequence[int] = self._tokenizer.encode(text, add_special_tokens=with_special).ids
        return tokens


def _load(file: Path) -> "Tokenizer":
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise InputError(
            "--tokenizer needs the tokenizers package: pip install 'warmset[tokenizers]'"
        ) from error
    try:
        tokenizer = Tokenizer.from_buffer(file.read_bytes())
    except OSError as error:
        raise InputError(
            f"{file}: cannot be read: {error.strerror or error}: give a {TOKENIZER_FILE} or its folder"
        ) from error
    except ValueError as error:
        raise InputError(
            f"{file}: is no {TOKENIZER_FILE}: {error}: give that file of the model, or its folder"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _first_known(counted: int | None, estimated: int) -> int:
    return estimated if counted is None else counted
