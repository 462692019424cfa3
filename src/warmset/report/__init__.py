"""Evaluation -> the report that people read: HTML, Markdown, JSON, and the few rows for a terminal."""

from pathlib import Path

from warmset.evaluation import Evaluation, to_json
from warmset.report.sections import KeyTable, build_document, key_table, verdict_sentence
from warmset.report.texts import LANGUAGES, Language

__all__ = [
    "LANGUAGES",
    "KeyTable",
    "Language",
    "key_table",
    "render_html",
    "render_markdown",
    "verdict_sentence",
    "write_report",
]

JSON_FILE = "evaluation.json"


def render_html(evaluation: Evaluation, language: Language) -> str:
    """The report as one self-contained page."""
    from warmset.report import html

    return html.render_document(build_document(evaluation, language))


def render_markdown(evaluation: Evaluation, language: Language) -> str:
    """The report as Markdown."""
    from warmset.report import markdown

    return markdown.render_document(build_document(evaluation, language))


def write_report(evaluation: Evaluation, folder: Path, languages: tuple[Language, ...]) -> tuple[Path, ...]:
    """Write the report into a folder, and name the files written.

    The first language gets `report.html` and `report.md`, another one its code in the name, with a link
    between the two.
    """
    from warmset.report import html, markdown

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / JSON_FILE]
    paths[0].write_bytes(to_json(evaluation))
    stems = {
        language: "report" if index == 0 else f"report.{language}" for index, language in enumerate(languages)
    }
    for language, stem in stems.items():
        document = build_document(evaluation, language)
        others = [other for each, other in stems.items() if each != language]
        for suffix, render in ((".html", html.render_document), (".md", markdown.render_document)):
            other = f"{others[0]}{suffix}" if others else ""
            path = folder / f"{stem}{suffix}"
            path.write_text(
                render(document, other_language_file=other, json_file=JSON_FILE), encoding="utf-8"
            )
            paths.append(path)
    return tuple(paths)
