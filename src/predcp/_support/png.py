"""Pictures of charts as small PNG files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Enough for lines and their smoothed edges, at a third of the bytes of full colour.
_COLOURS = 128


def png(figure: Figure, dpi: int = 100) -> bytes:
    """A figure as PNG with a palette; equal figures give equal bytes."""
    buffer = io.BytesIO()
    # Leave out the version of matplotlib.
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return with_palette(buffer.getvalue())


def with_palette(content: bytes) -> bytes:
    """A PNG in at most 128 colours; transparent places become white."""
    from PIL import Image

    picture = Image.open(io.BytesIO(content)).convert("RGBA")
    flat = Image.new("RGB", picture.size, "white")
    flat.paste(picture, mask=picture.getchannel("A"))
    few = flat.quantize(_COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    buffer = io.BytesIO()
    few.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
