"""Document -> one HTML file that needs nothing outside itself."""

import base64
import hashlib
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from warmset.report.charts import BarChart, Chart, RangeChart, embedded
from warmset.report.document import Document, Table
from warmset.report.texts import TAG_SECTIONS, Texts


def render_document(document: Document, *, other_language_file: str = "", json_file: str = "") -> str:
    """The page. All text is escaped, and only the two scripts whose hashes the policy names may run."""
    texts = Texts(document.language)
    scripts = _scripts()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            document=document,
            say=texts,
            tags=_tags(texts),
            style=_read("templates", "style.css"),
            scripts=scripts,
            policy=_policy(scripts),
            other_language_file=other_language_file,
            json_file=json_file,
        )
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("warmset.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.globals.update(is_number=_is_number, chart_class=_chart_class, embedded=embedded)
    return environment


def _is_number(table: Table, index: int) -> bool:
    return index >= table.numeric_from_index and index not in table.text_columns


def _chart_class(chart: Chart) -> str:
    if isinstance(chart, BarChart):
        return "bars"
    if isinstance(chart, RangeChart):
        return "dots"
    return "tall" if chart.bands else ""


def _tags(texts: Texts) -> dict[str, dict[str, str]]:
    return {
        name: {"text": texts(f"{section}.{name}"), "hint": texts(f"{section}.{name}_hint")}
        for name, section in TAG_SECTIONS.items()
    }


@cache
def _scripts() -> tuple[str, ...]:
    return _read("vendor", "echarts.min.js"), _read("templates", "charts.js")


def _policy(scripts: tuple[str, ...]) -> str:
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _read(folder: str, name: str) -> str:
    return files("warmset.report").joinpath(folder, name).read_text(encoding="utf-8")
