"""What the generated pages below reports/ share: Markdown tables, and where the text goes."""
from pathlib import Path


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
            *("| " + " | ".join(map(cell, row)) + " |" for row in rows), ""]


def give(text: str, to: Path | None) -> None:
    """Into the file, or printed where there is none."""
    if to:
        to.write_text(text)
    else:
        print(text, end="")
