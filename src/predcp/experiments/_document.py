"""A report's blocks, and how they look as Markdown and as one self-contained HTML page."""

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Heading:
    """A section's title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Plain words."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table of texts; columns that are empty in every row are not shown."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    def lines(self) -> list[tuple[str, ...]]:
        """The header and the rows, without empty columns."""
        kept = [place for place, texts in enumerate(zip(*self.rows)) if any(texts)]
        return [tuple(row[place] for place in kept) for row in (self.header, *self.rows)]


@dataclass(frozen=True)
class Code:
    """Text to copy, or a traceback."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A PNG image; `file_name` is what Markdown links to."""

    file_name: str
    alternative: str
    content: bytes


Block = Heading | Paragraph | Grid | Code | Picture

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0 }
th, td { border-bottom: 1px solid #ccc; padding: .25rem .7rem; text-align: left }
th { border-bottom: 2px solid #555 } td { font-variant-numeric: tabular-nums }
pre { background: #f4f4f4; overflow-x: auto; padding: .6rem } img { max-width: 100% }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd }
  pre { background: #262626 } img { background: #fff } }
"""


def write_document(folder: Path, title: str, blocks: Sequence[Block]) -> list[Path]:
    """Write `report.md`, `report.html` and the pictures; the paths of the first two."""
    folder.mkdir(parents=True, exist_ok=True)
    markdown, page = folder / "report.md", folder / "report.html"
    markdown.write_text(to_markdown(blocks), "utf-8")
    page.write_text(to_html(title, blocks), "utf-8")
    for block in blocks:
        if isinstance(block, Picture):
            (folder / block.file_name).write_bytes(block.content)
    return [markdown, page]


def to_markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown; pictures are links to files beside it."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """The blocks as one self-contained page, with embedded styles and pictures."""
    body = "\n".join(_html(block) for block in blocks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Paragraph(text):
            return text
        case Grid():
            header, *rows = block.lines()
            lines = [header, tuple("---" for _ in header), *rows]
            return "\n".join("| " + " | ".join(map(_escape_bar, line)) + " |" for line in lines)
        case Code(text):
            return f"```\n{text.rstrip()}\n```"
        case Picture(file_name, alternative, _):
            return f"![{alternative}]({file_name})"


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{html.escape(text)}</h{level}>"
        case Paragraph(text):
            return f"<p>{html.escape(text)}</p>"
        case Grid():
            header, *rows = block.lines()
            lines = ["<tr>" + "".join(f"<th>{html.escape(cell)}</th>" for cell in header) + "</tr>"]
            lines += [
                "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
                for row in rows
            ]
            return "<table>\n" + "\n".join(lines) + "\n</table>"
        case Code(text):
            return f"<pre>{html.escape(text)}</pre>"
        case Picture(_, alternative, content):
            encoded = base64.b64encode(content).decode()
            source = f"data:image/png;base64,{encoded}"
            return f'<p><img alt="{html.escape(alternative)}" src="{source}"></p>'


def _escape_bar(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
