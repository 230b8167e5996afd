"""Make the pages of the examples and of the figures, with their pictures: `python docs/make_gallery.py`.

`--examples` or `--figures` makes one of them. Every number in these pages comes from a program.
"""

import argparse
import contextlib
import importlib.util
import io
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import jax
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

from predcp.paper.figures import FIGURES, write

DOCS = Path(__file__).parent
EXAMPLES = sorted((DOCS.parent / "examples").glob("*.py"))
_HEAD = "<!-- written by docs/make_gallery.py; change that file, or the program of a section -->\n"
_WIDTH = 1000

_EXAMPLES_INTRO = """# Examples

Six common models. Each section names the reference model, shows what the prior changes, and has the
output and the whole program. To run one from a clone: `python examples/NAME.py`.
"""
_FIGURES_INTRO = """# Figures of the paper

Every figure of the paper and its appendix, made with the public functions of this library. The
captions say what to see, what we chose if the paper does not say it, and where the paper is wrong.
`predcp figures NAME` makes a figure as PDF and PNG; `--data` adds the numbers.
"""


def load(path: Path) -> ModuleType:
    """Import an example as a module.

    **Arguments**: `path`, its file.
    """
    spec = importlib.util.spec_from_file_location(f"examples_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small(source: Path, target: Path) -> None:
    """Write a picture for a page: at most a thousand pixels wide, with a palette of colours.

    **Arguments**: `source`, the picture; `target`, the file to write.
    """
    with Image.open(source) as image:
        height = round(image.height * min(1.0, _WIDTH / image.width))
        smaller = image.convert("RGB").resize((min(_WIDTH, image.width), height))
        target.parent.mkdir(parents=True, exist_ok=True)
        smaller.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)


def example_section(path: Path) -> str:
    """Run one example, keep its picture, and return its section of the page.

    **Arguments**: `path`, its file.
    """
    module, printed = load(path), io.StringIO()
    with TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        module.main(folder)
        small(Path(folder) / f"{path.stem}.png", DOCS / "images" / "examples" / f"{path.stem}.png")
    plt.close("all")
    question, reference = (module.__doc__ or "").strip().split("\n\n")
    picture = f"![{question}](images/examples/{path.stem}.png)"
    code = f'```python\n--8<-- "examples/{path.stem}.py"\n```'
    output = printed.getvalue().rstrip().replace("\n", "\n    ")
    return (
        f"## {path.stem}\n\n**{question}** {reference}\n\n{picture}\n\n"
        f"Output:\n\n    {output}\n\n{code}\n"
    )


def figure_section(name: str) -> str:
    """Make one figure, keep a small picture of it, and return its section of the page.

    **Arguments**: `name` of the figure.
    """
    figure = FIGURES[name]
    with TemporaryDirectory() as folder:
        _, png, caption, *_ = write(figure, folder)
        small(png, DOCS / "images" / "figures" / f"{name}.png")
        text = caption.read_text(encoding="utf-8").split("\n\n", 2)[2].strip()
    # Python-Markdown requires an empty line before a list.
    text = re.sub(r"^(?!- | )(\S[^\n]*)\n(?=- )", r"\1\n\n", text, flags=re.MULTILINE)
    picture = f"![{figure.title}](images/figures/{name}.png)"
    return f"## {name}\n\n*{figure.paper}: {figure.title}.*\n\n{picture}\n\n{text}\n"


def main() -> None:
    """Write the pages that are asked for, both by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", action="store_true")
    parser.add_argument("--figures", action="store_true")
    chosen = parser.parse_args()
    both = chosen.examples == chosen.figures
    if both or chosen.examples:
        sections = []
        for path in EXAMPLES:
            print(path.stem, file=sys.stderr, flush=True)
            sections.append(example_section(path))
        (DOCS / "examples.md").write_text("\n".join([_HEAD + _EXAMPLES_INTRO, *sections]))
    if both or chosen.figures:
        jax.config.update("jax_enable_x64", True)
        sections = []
        for name in FIGURES:
            print(name, file=sys.stderr, flush=True)
            sections.append(figure_section(name))
        (DOCS / "figures.md").write_text("\n".join([_HEAD + _FIGURES_INTRO, *sections]))


if __name__ == "__main__":
    main()
