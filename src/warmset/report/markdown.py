"""Document -> Markdown: the same words and numbers, for a wiki, a ticket or a diff."""

import re
from collections.abc import Iterator

from warmset.report.document import (
    Block,
    Bullets,
    Cell,
    Document,
    Entry,
    Figure,
    Group,
    Prose,
    Section,
    Table,
    Tile,
)
from warmset.report.texts import Texts

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")


def render_document(document: Document, *, other_language_file: str = "", json_file: str = "") -> str:
    """The report as Markdown. Text from outside cannot become markup: special characters are escaped."""
    texts = Texts(document.language)
    lines = [*_head(document, texts), *_tiles(document.tiles, texts)]
    for section in document.sections:
        lines += _section(section, texts)
    lines += ["---", "", *(f"{_plain(line)}\n" for line in document.footer)]
    if json_file:
        lines.append(f"[{texts('document.json_link')}]({json_file})")
    if other_language_file:
        lines.append(f"[{texts('document.other_language')}]({other_language_file})")
    return "\n".join(lines).strip() + "\n"


def _head(document: Document, texts: Texts) -> Iterator[str]:
    verdict = document.verdict
    yield from (f"# {_plain(document.title)}", "", _plain(document.subtitle), "")
    yield from (f"## {texts('verdict.heading')}", "", f"**{_plain(verdict.sentence)}**", "")
    for key, sentences in (("why", verdict.reasons), ("would_change", verdict.would_change)):
        if sentences:
            yield from (f"### {texts(f'verdict.{key}')}", "", *_bullets(sentences), "")


def _tiles(tiles: tuple[Tile, ...], texts: Texts) -> Iterator[str]:
    yield from (f"## {texts('key_numbers.heading')}", "", _plain(texts("key_numbers.lead")), "")
    for tile in tiles:
        beside = [f"{name}{texts('document.label_separator')}{text}" for name, text in tile.beside]
        rest = texts("document.item_separator").join(filter(None, [*beside, tile.note]))
        value = f"{tile.text} ({tile.detail})" if tile.detail else tile.text
        label = f"{_plain(tile.label)}{texts('document.label_separator')}"
        yield f"- {label}**{_plain(value)}** · {_plain(rest)}"
    yield ""


def _section(section: Section, texts: Texts) -> Iterator[str]:
    yield from (f"## {_plain(section.title)}", "")
    if section.lead:
        yield from (_plain(section.lead), "")
    for block in section.blocks:
        yield from _block(block, texts)


def _block(block: Block, texts: Texts) -> Iterator[str]:
    match block:
        case Prose(text=text):
            yield from (_plain(text), "")
        case Bullets(items=items):
            yield from (*_bullets(items), "")
        case Table():
            yield from _table(block, texts)
        case Figure():
            yield from (f"### {_plain(block.title)}", "", _plain(block.reading), "")
            yield from _table(block.table, texts)
        case Entry():
            yield from _entry(block, texts)
        case Group():
            yield from (f"### {_plain(block.title)}", "")
            if block.reading:
                yield from (_plain(block.reading), "")
            for part in block.blocks:
                yield from _block(part, texts)


def _entry(entry: Entry, texts: Texts) -> Iterator[str]:
    yield from (f"### {entry.row_index}. {_plain(entry.title)}", "", _plain(entry.definition), "")
    yield from _table(entry.values, texts)
    if entry.gain is not None:
        yield from _table(entry.gain, texts)
    elif entry.no_gain:
        yield from (_plain(entry.no_gain), "")
    for key, text in (("method", entry.method), ("holds_for", entry.holds_for)):
        yield f"- **{texts(f'metrics.{key}')}**{texts('document.label_separator')}{_plain(text)}"
    yield ""


def _table(table: Table, texts: Texts) -> Iterator[str]:
    if table.caption:
        yield from (f"**{_plain(table.caption)}**", "")
    numeric = [
        index >= table.numeric_from_index and index not in table.text_columns
        for index in range(len(table.columns))
    ]
    yield _row(_plain(column) for column in table.columns)
    yield _row("---:" if right else "---" for right in numeric)
    for row in table.rows:
        yield _row(_cell(cell, texts) for cell in row)
    yield ""
    if table.note:
        yield from (_plain(table.note), "")


def _row(cells: Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, texts: Texts) -> str:
    text = _plain(cell.text)
    if cell.items:
        text = "<br>".join(_plain(item) for item in cell.items)
    if cell.tone == "strong" and text:
        text = f"**{text}**"
    if cell.tag:
        section = "basis" if cell.tag in {"exact", "analytic"} else "origins"
        text = f"{text} _{texts(f'{section}.{cell.tag}')}_".strip()
    return f"{text} ({_plain(cell.detail)})" if cell.detail else text


def _bullets(items: tuple[str, ...]) -> Iterator[str]:
    return (f"- {_plain(item)}" for item in items)


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
