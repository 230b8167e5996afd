"""Make the store, the pictures, and what the pages say of it."""

import re
from collections.abc import Sequence
from pathlib import Path

from studies.scale_priors.costs import costs
from studies.scale_priors.page_tables import TABLES
from studies.scale_priors.pictures import draw
from studies.scale_priors.predictions import PREDICTIONS, table
from studies.scale_priors.sentences import sentences, settings
from studies.scale_priors.store import build, replace_cells

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "scale-priors.md", ROOT / "docs" / "experiments.md")
# What pages say in words.
TOLD = {"sentences": sentences, "settings": settings, "costs": costs}
BLOCK = re.compile(r"(<!-- scale-priors ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """A page with its tables as the store has them."""
    makers = {**TABLES, **TOLD, **{name: table(name) for name in PREDICTIONS}}
    return BLOCK.sub(lambda match: match[1] + makers[match[2]]() + match[3], text)


def report(results: Sequence[Path], check: bool, replace: Sequence[Path] = ()) -> int:
    """Make the page from the store, and the store from results if folders are given.

    **Arguments**: `check`, write nothing and return 1 if the page differs; `replace`, folders of runs
    whose simulated cells take the place of those in the store.
    """
    import jax

    jax.config.update("jax_enable_x64", True)
    if results:
        build(results)
    for folder in replace:
        replace_cells(folder)
    stale = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = filled(text)
        if new != text:
            stale.append(page.name)
            if not check:
                page.write_text(new, encoding="utf-8")
    if check:
        print(f"not as the store has them: {', '.join(stale)}" if stale else "current")
        return int(bool(stale))
    draw()
    return 0
