"""Tables for the terminal."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from warmset.evaluation import Evaluation
from warmset.report import Language, key_table, verdict_sentence


def print_evaluation(evaluation: Evaluation, language: Language) -> None:
    """The verdict and the key table on stdout."""
    console = Console()
    console.print()
    console.print(Text(verdict_sentence(evaluation, language), style="bold"))
    console.print()
    numbers = key_table(evaluation, language)
    table = Table(*numbers.columns)
    for column in table.columns:
        column.overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
    for row in numbers.rows:
        table.add_row(*row)
    console.print(table)
