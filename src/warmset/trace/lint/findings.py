"""What a lint says: findings with what mending each is worth, and where the misses of a trace come from."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

Confidence = Literal["certain", "likely"]
Counted = Literal["requests", "sessions", "ids"]

MEASURED = "measured on this trace"
TEXT_DEFINITION = (
    "token hit rate = input tokens in leading blocks that an earlier request of the trace had, over all "
    "input tokens; unlimited capacity, nothing expires, each model apart"
)
IDS_DEFINITION = (
    "token hit rate = input tokens in leading blocks that an earlier request of the trace had, over all "
    "input tokens; unlimited capacity, nothing expires"
)
CACHED_DEFINITION = "token hit rate = cached tokens that the log reports, over all input tokens"


@dataclass(frozen=True, slots=True)
class HitRate:
    """Input tokens of all requests, and those of them that need no prefill."""

    input_tokens: int
    hit_tokens: int

    @property
    def token_hit_ratio(self) -> float | None:
        """Hit tokens over input tokens; `None` where there are no tokens."""
        return self.hit_tokens / self.input_tokens if self.input_tokens else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One cause, in one role of the prompt.

    Depths are medians over the requests; `lost_tokens` counts tokens that the request before had too, behind
    the place where the prompts part, and that no other request had put into the cache.
    """

    code: str
    count: int
    num_total: int
    """How many `counted` were looked at."""
    example: str
    """The first place and the kind of what differs there; never text of a prompt."""
    mend: str
    """What to do about it, in a sentence."""
    counted: Counted = "requests"
    role: str | None = None
    depth_tokens: int | None = None
    depth_share: float | None = None
    """The depth over the length of the prompt."""
    lost_tokens: int = 0
    behind_requests: int = 0
    """Of `count`: found behind another break of the request, so that mending it alone may gain nothing."""
    between_sessions_requests: int = 0
    """Of `count`: first requests of a session, held against the start of another one."""
    confidence: Confidence = "likely"
    origin: str = MEASURED
    fix: str | None = None
    """What was done to every prompt to measure the gain; `None` where none was measured."""
    baseline: str | None = None
    """What `before` measures, where that is not what the report's does."""
    before: HitRate | None = None
    """What `after` is held against."""
    after: HitRate | None = None
    """Hits when the trace was read again with only this mended."""

    @property
    def gain_ratio(self) -> float | None:
        """Token hit rate that mending this alone adds."""
        if self.before is None or self.after is None:
            return None
        before, after = self.before.token_hit_ratio, self.after.token_hit_ratio
        return None if before is None or after is None else after - before


@dataclass(frozen=True, slots=True)
class MissShare:
    """Why tokens missed: `code` is one of the keys of `MISS_TITLES`."""

    code: str
    miss_tokens: int


MISS_TITLES = {
    "new_text": "new text, or the start of a conversation: nothing to re-use",
    "mended": "saved by all fixes together",
    "unmended": "sent again behind a break whose fix was not measured, or saves no more",
    "no_cause": "sent again behind a break without a known cause",
    "session_start": "first request of a session or conversation",
    "appended": "new text at the end of a conversation",
    "dropped": "behind a compaction: the prompt is over 10 % shorter than the one before",
    "prefix_break": "behind another change inside the prompt before",
    "uncovered": "in a last block that the log does not name",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """Findings of a trace, the most valuable first."""

    name: str
    num_requests: int
    baseline: str
    """What `before` measures, in a sentence."""
    before: HitRate
    after_all: HitRate | None
    """With every measured fix together; `None` where nothing was measured."""
    findings: tuple[LintFinding, ...]
    misses: tuple[MissShare, ...]
    """They add up to the misses of `before`."""
    assumptions: tuple[str, ...] = ()
    reads_text: bool = False
    sees_turns: bool = True
    """Whether it is known which request goes on from which: without, no break can be told from new text."""

    @property
    def breaks(self) -> tuple[LintFinding, ...]:
        """Findings that cost tokens."""
        return tuple(finding for finding in self.findings if finding.lost_tokens)

    @property
    def unexplained_share(self) -> float | None:
        """Misses that no fix mends, over all misses."""
        missed = sum(share.miss_tokens for share in self.misses)
        mended = sum(share.miss_tokens for share in self.misses if share.code == "mended")
        return (missed - mended) / missed if missed else None


def by_worth(findings: list[LintFinding]) -> tuple[LintFinding, ...]:
    """The most gain first, then the most tokens; what has neither stays in order."""
    return tuple(sorted(findings, key=lambda each: (-(each.gain_ratio or 0), -each.lost_tokens)))


def as_json(report: LintReport) -> dict[str, Any]:
    """The report in plain values with the names of its fields; each hit rate has its ratio."""
    return {
        "name": report.name,
        "requests": report.num_requests,
        "reads_text": report.reads_text,
        "sees_turns": report.sees_turns,
        "baseline": report.baseline,
        "before": _rate(report.before),
        "after_all": _rate(report.after_all),
        "findings": [
            {
                **asdict(finding),
                "before": _rate(finding.before),
                "after": _rate(finding.after),
                "gain_ratio": finding.gain_ratio,
            }
            for finding in report.findings
        ],
        "misses": [asdict(share) for share in report.misses],
        "unexplained_share": report.unexplained_share,
        "assumptions": list(report.assumptions),
    }


def _rate(rate: HitRate | None) -> dict[str, Any] | None:
    return None if rate is None else {**asdict(rate), "token_hit_ratio": rate.token_hit_ratio}
