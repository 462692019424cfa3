"""Breaks of a log by cause: how many requests, how deep, how much is sent again."""

from collections import Counter
from dataclasses import dataclass, field
from statistics import median_low
from typing import NamedTuple

from warmset.trace.lint.causes import UNKNOWN_CAUSE, Cause, cause_of
from warmset.trace.lint.kept import KEPT_CODES, kept_history
from warmset.trace.lint.lineage import Pair, head_of
from warmset.trace.lint.remedies import remedy_for
from warmset.trace.lint.remedy import Remedy
from warmset.trace.lint.view import Kept, Parting, View, parting, place_of

MODEL_CHANGE = "model_change"
_MOST_ROUNDS = 8
"""Breaks of one prompt that are looked for behind one another."""
_PER_HISTORY = frozenset({"carrier", "memory_block", "history_trimmed", "compaction"})
"""Causes that concern messages of several roles."""


class Key(NamedTuple):
    """A cause and the part of the prompt that it is in."""

    code: str
    slot: str


@dataclass
class Case:
    """One cause in one part of the prompt, while it is counted."""

    key: Key
    remedy: Remedy | None
    example: str
    roles: Counter[str] = field(default_factory=Counter)
    last_index: int = -1
    depths_tokens: list[int] = field(default_factory=list)
    depth_shares: list[float] = field(default_factory=list)
    lost_tokens: int = 0
    num_behind: int = 0
    num_between: int = 0
    num_unsolved: int = 0

    @property
    def is_kept(self) -> bool:
        """Whether it is mended by leaving history as it was."""
        return self.key.slot == "history" and self.key.code in KEPT_CODES

    @property
    def depth_tokens(self) -> int:
        """The middle one of all depths."""
        return median_low(self.depths_tokens)

    @property
    def depth_share(self) -> float:
        """The middle one of all depths, each over the length of its prompt."""
        return median_low(self.depth_shares)


class Sizes(NamedTuple):
    """What a request has, and what of it another had before."""

    input_tokens: int
    known_tokens: int


class Cases:
    """Causes, as the pairs of a log show them."""

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._cases: dict[Key, Case] = {}
        self.lost_tokens = 0
        """Sent again behind the first break of each request."""
        self.lost_without_cause_tokens = 0

    def found(self) -> list[Case]:
        """All causes, in the order in which they came up."""
        return list(self._cases.values())

    def look_at(self, log_index: int, pair: Pair, view: View, sizes: Sizes) -> None:
        """Take apart why a prompt does not go on from the one before: the first break, then those behind."""
        if not view.num_characters:
            return
        after = head_of(view) if pair.between_sessions else view
        look = _Look(log_index, pair.between_sessions, view, sizes)
        num_before = self._model_break(pair.before, after, look)
        self._text_breaks(pair.before, after, look, num_before)

    def _model_break(self, before: View, after: View, look: "_Look") -> int:
        if before.prompt.model == after.prompt.model or look.between_sessions:
            return 0
        found = parting(before, after)
        common = (
            min(before.num_characters, after.num_characters)
            if found is None
            else found.depth_characters + found.common_characters
        )
        lost = look.lost_tokens(0, common)
        if lost < self._block_tokens:
            return 0
        case = self._case(Key(MODEL_CHANGE, "prompt"), f"{look.view.prompt.place}: another model than before")
        self._count(case, look, "model", depth_characters=0, lost=lost, is_behind=False)
        return 1

    def _text_breaks(self, before: View, after: View, look: "_Look", num_before: int) -> None:
        for num_breaks in range(num_before, _MOST_ROUNDS):
            found = parting(before, after)
            if found is None:
                return
            cause = cause_of(before, after, found, between_sessions=look.between_sessions)
            common = _common_characters(found, cause)
            lost = look.lost_tokens(found.depth_characters, common, behind=num_breaks > 0)
            if lost < (1 if cause.code == "carrier" else self._block_tokens):
                return
            key = Key(cause.code, _slot(found))
            case = self._case(key, f"{place_of(after, found)}: {cause.detail}")
            role = "history" if cause.code in _PER_HISTORY and key.slot == "history" else found.second.role
            self._count(case, look, role, found.depth_characters, lost, is_behind=num_breaks > 0)
            if cause.code == UNKNOWN_CAUSE:
                self.lost_without_cause_tokens += 0 if num_breaks else lost
            mended = _mended(case, before, after, found)
            if mended is None:
                return
            if not _is_solved(mended, case, found, between_sessions=look.between_sessions):
                case.num_unsolved += 1
                return
            before, after = mended

    def _case(self, key: Key, example: str) -> Case:
        if key not in self._cases:
            self._cases[key] = Case(key, remedy_for(key.code, key.slot), example)
        return self._cases[key]

    def _count(
        self, case: Case, look: "_Look", role: str, depth_characters: int, lost: int, *, is_behind: bool
    ) -> None:
        if not is_behind:
            self.lost_tokens += lost
        if case.last_index == look.log_index:
            return
        case.last_index = look.log_index
        case.roles[role] += 1
        depth = depth_characters * look.tokens_per_character
        case.depths_tokens.append(int(depth))
        case.depth_shares.append(depth_characters / look.view.num_characters)
        case.lost_tokens += lost
        case.num_behind += is_behind
        case.num_between += look.between_sessions


class _Look(NamedTuple):
    """One prompt under examination."""

    log_index: int
    between_sessions: bool
    view: View
    sizes: Sizes

    @property
    def tokens_per_character(self) -> float:
        return self.sizes.input_tokens / self.view.num_characters

    def lost_tokens(self, depth_characters: int, common_characters: int, *, behind: bool = False) -> int:
        """Tokens that the prompt before had too and that nobody else had put into the cache.

        For a break behind another one: all of them.
        """
        common = common_characters * self.tokens_per_character
        if behind:
            return int(common)
        known = self.sizes.known_tokens
        elsewhere = max(known - depth_characters * self.tokens_per_character, 0)
        return max(int(min(common - elsewhere, self.sizes.input_tokens - known)), 0)


def _common_characters(found: Parting, cause: Cause) -> int:
    """Characters behind the place that the prompt before had too, if in other order or spelling."""
    same_content = cause.code == "whitespace" or (
        cause.code == "json_key_order" and found.second.slot == "tools"
    )
    if not same_content:
        return found.common_characters
    length = min(len(found.first.text), len(found.second.text))
    return found.common_characters - found.inside_characters + length - found.offset


def _slot(found: Parting) -> str:
    slots = {found.first.slot, found.second.slot}
    return next(slot for slot in ("system", "prompt", "tools", "history") if slot in slots)


def _mended(case: Case, before: View, after: View, found: Parting) -> tuple[View, View] | None:
    if case.is_kept:
        sent = before.prompt.messages
        kept = Kept(sent, [[message] for message in sent])
        return before, View(kept_history(kept, after.prompt, {case.key.code})[0])
    if case.remedy is None:
        return None
    case.remedy.learn(before, after, found)
    return View(case.remedy.split(before.prompt).prompt), View(case.remedy.split(after.prompt).prompt)


def _is_solved(mended: tuple[View, View], case: Case, found: Parting, *, between_sessions: bool) -> bool:
    """Whether the prompts now part later, or for another cause, or not at all."""
    remaining = parting(*mended)
    if remaining is None or remaining.depth_characters > found.depth_characters:
        return True
    if not remaining.common_characters:
        return True
    cause: Cause = cause_of(*mended, remaining, between_sessions=between_sessions)
    return cause.code != case.key.code
