"""Text of a user, a workspace or a session that stands above text that all share."""

from dataclasses import replace

from warmset.trace.lint.align import shared, units_of
from warmset.trace.lint.edits import with_lead, with_text
from warmset.trace.lint.remedy import Split
from warmset.trace.lint.view import Parting, View, leading_systems
from warmset.trace.prompt import Prompt

_MIN_RUN_SIZE = 64
"""Characters of shared text that are worth moving."""


class SharedFirst:
    """Text that sessions share stands first, and what differs from session to session behind the tools."""

    order_index = 8
    title = "text that sessions share put first, the rest behind it and the tools"

    def __init__(self, slot: str) -> None:
        self._slot = slot
        self._classes: list[list[str]] = []

    def learn(self, before: View, after: View, found: Parting) -> None:
        """Take in two starts: what one class of sessions shares can only become less."""
        del found
        for text in self._standing(after):
            for number, runs in enumerate(self._classes):
                common = [part for run in runs for part in _common_runs(run, text)]
                if 2 * _size(common) >= _size(runs):
                    self._classes[number] = common
                    break
            else:
                for other in self._standing(before):
                    common = _common_runs(other, text)
                    if common:
                        self._classes.append(common)
                        break

    def _standing(self, view: View) -> list[str]:
        return [segment.text for segment in view.segments if segment.slot == self._slot]

    def split(self, prompt: Prompt) -> Split:
        """Put the shared runs first."""
        if prompt.text is not None:
            shared_text, private = self._parts_of(prompt.text)
            return Split(replace(prompt, text=shared_text + private) if shared_text else prompt)
        leading = leading_systems(prompt.messages)
        private_texts: list[str] = []

        def change(text: str) -> str:
            shared_text, private = self._parts_of(text)
            if not shared_text:
                return text
            private_texts.append(private)
            return shared_text

        heads = [with_text(message, change) for message in prompt.messages[:leading]]
        changed = replace(prompt, messages=[*heads, *prompt.messages[leading:]])
        return Split(with_lead(changed, "".join(private_texts)) if private_texts else prompt)

    def _parts_of(self, text: str) -> tuple[str, str]:
        """What the text has of the class that fits best, and the rest."""
        best: list[str] = []
        for runs in self._classes:
            found = [run for run in runs if run in text]
            if _size(found) > _size(best):
                best = found
        for run in best:
            text = text.replace(run, "", 1)
        return "".join(best), text


def _common_runs(first: str, second: str) -> list[str]:
    if first in second:
        return [first]
    old = units_of(first)
    runs = shared(old, units_of(second)).runs
    texts = ["".join(old[run.first : run.first + run.size]) for run in runs]
    return [text for text in texts if len(text) >= _MIN_RUN_SIZE]


def _size(texts: list[str]) -> int:
    return sum(map(len, texts))
