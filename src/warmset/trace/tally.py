"""What a reader counts while it reads: what was odd and kept, and what could not be used."""

from collections.abc import Iterator

from warmset.errors import Finding, TraceFormatError

DEFAULT_BAD_SHARE = 0.01
"""Rows that may be left out before reading fails."""
_GIVE_UP_AFTER = 1000
"""Rows after which a file that is mostly unusable is not read to its end."""

BAD_ROWS = "bad_rows"


class Tally:
    """Counts what is odd, with the first place of each kind, and refuses a file with too many bad rows.

    One tally serves one import. `rows` counts every row looked at, the bad ones included.
    """

    def __init__(self, bad_share: float = DEFAULT_BAD_SHARE) -> None:
        self.bad_share = bad_share
        self.rows = 0
        self.bad = 0
        self._first_bad = ""
        self._seen: dict[str, tuple[int, str]] = {}

    def note(self, code: str, place: str, count: int = 1) -> None:
        """Something odd that was kept or repaired; `place` says where and what, of the first."""
        seen, first = self._seen.get(code, (0, place))
        self._seen[code] = (seen + count, first)

    def drop(self, place: str, why: str) -> None:
        """A row that cannot be used: `place` is FILE:LINE, `why` says what is wrong and what would do."""
        self.bad += 1
        self._first_bad = self._first_bad or f"{place}: {why}"
        if self.rows >= _GIVE_UP_AFTER and 2 * self.bad > self.rows:
            self.check()

    def absorb(self, other: "Tally") -> None:
        """Count what another tally counted, after one's own."""
        self.rows += other.rows
        self.bad += other.bad
        self._first_bad = self._first_bad or other._first_bad
        for code, (count, first) in other._seen.items():
            self.note(code, first, count)

    def check(self) -> None:
        """Refuse what was read if too many rows were bad.

        Raises: TraceFormatError with the first bad row and the share of bad ones.
        """
        if self.bad <= self.bad_share * self.rows:
            return
        others = f" ({self.bad} of {self.rows} rows cannot be used)" if self.bad > 1 else ""
        raise TraceFormatError(f"{self._first_bad}{others}")

    def findings(self) -> Iterator[Finding]:
        """What was odd, counted; bad rows first."""
        if self.bad:
            yield Finding(BAD_ROWS, self.bad, self._first_bad)
        for code, (count, first) in self._seen.items():
            yield Finding(code, count, first)
