"""What keeps a trace from re-using more, where hardware is not the answer."""

from warmset.trace.lint.findings import HitRate, LintFinding, LintReport, MissShare, as_json
from warmset.trace.lint.ids import lint_ids, structure_findings
from warmset.trace.lint.text import lint_text

__all__ = [
    "HitRate",
    "LintFinding",
    "LintReport",
    "MissShare",
    "as_json",
    "lint_ids",
    "lint_text",
    "structure_findings",
]
