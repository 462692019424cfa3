"""OpenClaw: its folder, an agent's, one of sessions, or single files, of all versions.

A model call is an entry of an assistant with usage. Its prompt is not in the transcript: what prompts share
is put together from the entries on its path, see `transcript`. Exact prompts are in `logs/cache-trace.jsonl`
and in trajectories; they are read where they are imported without transcripts.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.readers import openclaw_exact
from warmset.trace.readers.openclaw_entries import EntryReader, Origin
from warmset.trace.readers.openclaw_files import (
    IMPORT_ARCHIVE,
    FileKind,
    SessionFacts,
    agent_of,
    file_kind,
    index_entries,
    is_ours,
    traffic_kind,
)
from warmset.trace.readers.openclaw_sqlite import opened_database
from warmset.trace.readers.spans import ContentHasher
from warmset.trace.readers.transcript import ASSUMPTIONS, TranscriptTaker
from warmset.trace.readers.transcript_rows import lines_of
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally
from warmset.trace.text_reading import ASSUMED_CHARS_PER_TOKEN, read_prompts

TITLE = "OpenClaw sessions"
FILES_REFER_TO_EACH_OTHER = True
"""The index names sessions of other files, and forks repeat their calls."""

_SKIPPED: dict[FileKind, str] = {"copy": "copied_files", "other": "other_files"}


def matches(head: Head) -> bool:
    """Databases, transcripts, their index and copies, exact prompts, and whatever else lies in its folder."""
    return is_ours(head)


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All sessions of all files, databases first; what is there twice counts once.

    Raises: TraceFormatError for a database that cannot be read.
    """
    files: dict[FileKind, list[Input]] = {}
    for source in inputs:
        files.setdefault(file_kind(source.head()), []).append(source)
    for kind, code in _SKIPPED.items():
        for source in files.get(kind, []):
            tally.note(code, f"{source.label}: left out")
    exact = files.get("exact", [])
    if exact and not (files.get("database") or files.get("transcript")):
        return read_prompts(prompts, exact, options, tally)
    for source in exact:
        tally.note(
            "exact_prompts", f"{source.label}: repeats calls of the transcripts; import it alone to use it"
        )
    reader = _Reader(options, tally)
    for source in files.get("index", []):
        reader.facts.update(index_entries(source, tally))
    for source in files.get("database", []):
        reader.take_database(source)
    for source in files.get("transcript", []):
        reader.take_file(source)
    reader.state_assumptions()
    return reader.builder


def prompts(source: Input, tally: Tally) -> Iterator[Prompt]:
    """The exact prompts of a cache trace or a trajectory; none of any other file."""
    if file_kind(source.head()) == "exact":
        yield from openclaw_exact.prompts(source, tally)


class _Reader:
    """Sessions into the builder."""

    def __init__(self, options: ReadOptions, tally: Tally) -> None:
        self.builder = TraceBuilder(
            options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS,
            tally,
            ids_are_content=True,
            times_are_epoch=True,
        )
        self.facts: dict[str, SessionFacts] = {}
        """By session id, and by name of the session's file."""
        self._tally = tally
        self._hasher = ContentHasher(options.hash_key)
        self._chars_per_token = options.chars_per_token or ASSUMED_CHARS_PER_TOKEN
        self._taker = TranscriptTaker(self.builder, self._hasher)
        self._in_database: set[str] = set()
        self._num_reports = 0
        self._num_transcripts = 0

    def take_database(self, source: Input) -> None:
        """All sessions of an agent's database."""
        with opened_database(source) as database:
            for transcript in database.transcripts(self._tally):
                self._in_database.add(transcript.session)
                entries = self._new_entries()
                entries.read(transcript.lines)
                facts = transcript.facts if transcript.facts.key else self._facts_of(transcript.session)
                self._take(entries, source.path, transcript.session, facts)

    def take_file(self, source: Input) -> None:
        """One transcript."""
        entries = self._new_entries()
        is_imported = IMPORT_ARCHIVE in source.path.parts
        if is_imported and source.head().rows[0].get("id") in self._in_database:
            self._tally.note("copied_files", f"{source.label}: its session is in the database")
            return
        entries.read(lines_of(source))
        stem = source.path.name.split(".jsonl", 1)[0]
        header = entries.header.get("id")
        session = header if isinstance(header, str) and not stem.startswith(f"{header}-topic-") else stem
        self._take(entries, source.path, session, self._facts_of(session, source.path.name))

    def _new_entries(self) -> EntryReader:
        return EntryReader(self._tally, self._hasher, self._chars_per_token)

    def _facts_of(self, session: str, file_name: str = "") -> SessionFacts:
        return self.facts.get(file_name) or self.facts.get(session) or SessionFacts()

    def _take(self, entries: EntryReader, path: Path, session: str, facts: SessionFacts) -> None:
        kind = traffic_kind(facts, has_parent=isinstance(entries.header.get("parentSession"), str))
        # A sub-agent's system prompt is another one than its agent's.
        lineage = f"{agent_of(path, facts)}\0{'sub-agent' if kind == 'sub-agent' else ''}"
        report_tokens = UNKNOWN
        if facts.num_report_chars is not None:
            report_tokens = round(facts.num_report_chars / self._chars_per_token)
            self._num_reports += 1
        self._num_transcripts += 1
        self._taker.take(entries.place_calls(Origin(session, lineage, kind)), report_tokens)

    def state_assumptions(self) -> None:
        """What the trace rests on, for its provenance."""
        size = f"{self._chars_per_token:g} characters a token"
        self.builder.assumptions += [
            (
                "Transcripts hold neither system prompts nor tool schemas: their size is what a first prompt "
                f"has beyond its messages, at {size}; systemPromptReport, at {size}, bounds what sessions "
                f"share of it where there is one ({self._num_reports} of {self._num_transcripts} sessions)."
            ),
            (
                "Sessions of one agent, provider and model are taken to share system prompt and tools, "
                "sub-agents with sub-agents only."
            ),
            *ASSUMPTIONS,
        ]
