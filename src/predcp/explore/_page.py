"""The summary and the charts as HTML; whatever a visitor typed or uploaded is escaped."""

from html import escape

from predcp.explore._scene import Scene

STYLE = """<style>
#App > div:first-child { padding-top: 0; }
#App > div[class*="px-"] { padding: 24px 36px 48px; }
.predcp-title { font: 650 1.3rem system-ui, sans-serif; color: #1f2933; }
.predcp-group { font: 650 0.95rem system-ui, sans-serif; color: #b34e00; margin-top: 6px;
  border-top: 1px solid #e4e7eb; padding-top: 10px; }
.predcp-note { font: 0.85rem/1.45 system-ui, sans-serif; color: #616e7c; }
.predcp-summary { border-left: 4px solid #D55E00; background: #faf7f5; border-radius: 6px;
  padding: 14px 20px; margin: 0 0 18px; font-family: system-ui, sans-serif; color: #1f2933; }
.predcp-summary h2 { font-size: 1.2rem; line-height: 1.4; font-weight: 650; margin: 0 0 8px; }
.predcp-summary ul { margin: 0; padding-left: 1.1rem; columns: 2; column-gap: 2.5rem;
  font-size: 0.92rem; line-height: 1.5; list-style: disc; }
.predcp-summary li { break-inside: avoid; margin-bottom: 3px; }
.codehilite-wrapper button { opacity: 1 !important; visibility: visible !important; }
@media (max-width: 900px) { .predcp-summary ul { columns: 1; } }
</style>"""


def title(words: str) -> str:
    """The name at the top of the controls."""
    return f'<div class="predcp-title">{escape(words)}</div>'


def group(words: str) -> str:
    """The heading of a group of controls, or of a part of the page."""
    return f'<div class="predcp-group">{escape(words)}</div>'


def note(words: str) -> str:
    """A remark in small type."""
    return f'<div class="predcp-note">{escape(words)}</div>'


def page(scene: Scene) -> str:
    """The upper part of the page: words, then charts."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in scene.sentences)
    return (
        f'<section class="predcp-summary"><h2>{escape(scene.headline)}</h2>'
        f'<ul>{items}</ul></section><div class="predcp-charts">{scene.picture}</div>'
    )


def error(words: str) -> str:
    """What is wrong and what to do, in the place of the summary."""
    return (
        '<section class="predcp-summary predcp-error" role="alert">'
        f"<h2>Not yet</h2>{escape(words)}</section>"
    )
