"""The summary and the charts as HTML; whatever a visitor typed or uploaded is escaped."""

from html import escape

from predcp.explore._scene import Scene

_STYLE = """<style>
.predcp-summary { border-left: 4px solid #D55E00; background: #faf7f5; border-radius: 6px;
  padding: 14px 20px; margin: 0 0 18px; font-family: system-ui, sans-serif; color: #1f2933; }
.predcp-summary h2 { font-size: 1.25rem; line-height: 1.4; font-weight: 650; margin: 0 0 8px; }
.predcp-summary ul { margin: 0; padding-left: 1.1rem; columns: 2; column-gap: 2.5rem;
  font-size: 0.92rem; line-height: 1.5; list-style: disc; }
.predcp-summary li { break-inside: avoid; margin-bottom: 3px; }
@media (max-width: 900px) { .predcp-summary ul { columns: 1; } }
</style>"""


def page(scene: Scene) -> str:
    """The upper part of the page: words, then charts."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in scene.sentences)
    return (
        f'{_STYLE}<section class="predcp-summary"><h2>{escape(scene.headline)}</h2>'
        f'<ul>{items}</ul></section><div class="predcp-charts">{scene.picture}</div>'
    )


def escaped(text: str) -> str:
    """Words of ours with names of the visitor's in them, safe inside Markdown."""
    return "".join(f"&#{ord(c)};" if c in "\\`*_{}[]<>()#+-!|~$&:" else c for c in text)
