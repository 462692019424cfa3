"""What mends a cause, in one shape for all of them."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from warmset.trace.lint.edits import with_tail
from warmset.trace.lint.view import Parting, View
from warmset.trace.prompt import Prompt


class Remedy(Protocol):
    """A change that is the same for every prompt of a log, but for what it has learnt from breaks."""

    title: str
    """What is done, in words."""
    order_index: int
    """Which remedies come first where several are applied."""

    def learn(self, before: View, after: View, found: Parting) -> None:
        """Take in one break that it shall mend."""

    def split(self, prompt: Prompt) -> "Split":
        """The prompt without what goes last; the same object where nothing changes."""


class Split(NamedTuple):
    """A prompt, and what shall stand at its end."""

    prompt: Prompt
    last: Sequence[str] = ()


def apply(remedy: Remedy, prompt: Prompt) -> Prompt:
    """The prompt as it would be sent; the same object where nothing changes."""
    return with_tail(*remedy.split(prompt))
