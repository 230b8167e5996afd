"""The summary and the charts as HTML. All text that a visitor typed or uploaded is escaped."""

from collections.abc import Mapping
from html import escape

from predcp.explore._program import ScaleScene, Study
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
.predcp-summary { overflow-wrap: anywhere; }
.predcp-charts { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fit, minmax(min(300px, 100%), 1fr)); }
.predcp-problem { border-left: 4px solid #b42318; background: #fef3f2; border-radius: 6px;
  padding: 10px 16px; margin: 0 0 14px; font: 0.92rem/1.5 system-ui, sans-serif; color: #7a1a12;
  overflow-wrap: anywhere; }
.predcp-hint { border-color: #52606d; background: #f1f4f8; color: #323f4b; }
.predcp-note + .predcp-hint { margin-top: 12px; }
.predcp-charts .predcp-summary { margin: 0; font-size: 0.92rem; line-height: 1.5; }
.predcp-charts .predcp-present { border-color: #7b8794; background: #f5f7fa; }
.predcp-scale { font: 650 1.15rem system-ui, sans-serif; color: #1f2933; margin: 4px 0 10px; }
.predcp-pair { margin-bottom: 14px; }
.predcp-phone { display: none; }
.codehilite-wrapper button { opacity: 1 !important; visibility: visible !important; }
@media (max-width: 900px) { .predcp-summary ul { columns: 1; } }
@media (max-width: 767px) {
  #App > div[class*="px-"] { padding: 44px 14px 32px; }
  .predcp-summary { padding: 12px 14px; }
  .predcp-phone { display: block; margin: 0 0 12px; }
}
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


def page(scene: Scene | None, problem: str = "", hint: str = "") -> str:
    """The upper part of the page: what went wrong or is missing, the summary, the charts.

    **Arguments**
    - `scene`: what to show, None before there is anything.
    - `problem`: why the last choice could not be shown; the scene is then the one before it.
    - `hint`: what to do next.
    """
    parts = [
        '<div class="predcp-note predcp-phone">Choose the model and the prior in the menu ☰.</div>'
    ]
    if problem:
        kept = " The page still shows the previous choice." if scene else ""
        parts.append(f'<div class="predcp-problem" role="alert">{escape(problem)}.{kept}</div>')
    if hint:
        parts.append(_aside(hint))
    if scene:
        items = "".join(f"<li>{escape(sentence)}</li>" for sentence in scene.sentences)
        parts.append(
            f'<section class="predcp-summary"><h2>{escape(scene.headline)}</h2>'
            f'<ul>{items}</ul></section><div class="predcp-charts">{"".join(scene.charts)}</div>'
        )
    return "".join(parts)


def program_page(
    study: Study, scenes: Mapping[str, ScaleScene], problems: Mapping[str, str]
) -> str:
    """The page of a program: for each scale, the present prior and that of the sentence.

    **Arguments**
    - `study`: the program.
    - `scenes`: by label of the scale, what to show.
    - `problems`: by label of the scale, why the last sentence could not be shown.
    """
    if study.problem or study.audit is None:
        return refusal(f"{study.name} cannot be explored: {study.problem}")
    parts = ['<div class="predcp-note predcp-phone">State your sentences in the menu ☰.</div>']
    for each in study.audit:
        parts.append(f'<div class="predcp-scale">{escape(each.scale)}</div>')
        reason = problems.get(each.scale) or study.problems.get(each.scale)
        if reason:
            parts.append(refusal(reason))
        scene = scenes.get(each.scale)
        if scene is None:
            parts.append(_box(f"Present: {each.words}", "predcp-present"))
            continue
        boxes = _box(scene.present, "predcp-present") + _box(scene.yours)
        pairs = [
            boxes,
            *("".join(scene.charts[at : at + 2]) for at in range(0, len(scene.charts), 2)),
        ]
        parts += [f'<div class="predcp-charts predcp-pair">{pair}</div>' for pair in pairs]
    remark = (
        "The outermost bars hold what lies beyond them. Dashed outlines repeat the present prior."
    )
    parts += [note(remark)] if scenes else []
    return "".join([*parts, *map(_aside, study.audit.remarks)])


def _box(words: str, kind: str = "") -> str:
    return f'<section class="predcp-summary {kind}">{escape(words)}</section>'


def _aside(words: str) -> str:
    """A remark that stands out, such as what to do next."""
    return f'<div class="predcp-problem predcp-hint" role="status">{escape(words)}</div>'


def refusal(words: str) -> str:
    """Why a file, a program or a sentence was refused."""
    return f'<div class="predcp-problem" role="alert">{escape(words)}.</div>'
