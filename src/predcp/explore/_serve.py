"""Serve the explorer to this machine's browser, and to other machines only on request."""

import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import Any

from predcp.explore._program import Study, prepare, show, shown_study

LOCAL_HOSTS = ("127.0.0.1", "localhost")
_PORTS = 20
_PAGE = Path(__file__).parent / "app.py"
_PROGRAM_PAGE = Path(__file__).parent / "program_app.py"


def serve(
    host: str = "127.0.0.1", port: int = 2718, browser: bool = True, made: Study | None = None
) -> None:
    """Run the explorer until it is interrupted.

    **Arguments**: `host`, the address to listen on; `port`, or the next free one; `browser`, whether to
    open one; `made`, the study of a program to show in place of the models of the explorer.
    """
    show(made)
    import uvicorn  # pyright: ignore[reportMissingImports]

    local = host in LOCAL_HOSTS
    if not local:
        print(
            f"predcp: warning: --host {host} lets other machines reach the explorer. It has no "
            "password: anyone who can connect can use it and upload files into its memory.",
            file=sys.stderr,
        )
    port = free_port(host, port)
    address = f"http://{host}:{port}"
    print(f"predcp explore: {address} (Ctrl-C to stop)", flush=True)
    if browser:
        timer = threading.Timer(1.5, webbrowser.open, [address])
        timer.daemon = True
        timer.start()
    threading.Thread(target=_prepare, daemon=True).start()
    uvicorn.run(application(local), host=host, port=port, log_level="warning")


def free_port(host: str, port: int) -> int:
    """The port, or the first free one of the twenty after it."""
    candidates = range(port, min(port + _PORTS, 65536))
    if port < 1 or not candidates:
        raise ValueError(f"port must be 1 to 65535, got {port}")
    refused = ""
    for candidate in candidates:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError as error:
                refused = str(error)
                continue
        return candidate
    raise OSError(f"no free port from {port} to {candidates[-1]} on {host}: {refused}")


def application(local: bool = True) -> Any:
    """The page as an ASGI application; the explorer's own models are in double precision.

    **Arguments**: `local`, whether to answer only to the names of this machine, so that no page of
    another site can reach it under another name.
    """
    import jax
    import marimo  # pyright: ignore[reportMissingImports]
    from starlette.middleware.trustedhost import (  # pyright: ignore[reportMissingImports]
        TrustedHostMiddleware,
    )

    from predcp.explore._page import STYLE

    own = not shown_study().name
    if own:
        # Curves from 1e-8 to poles and far tails need it; a program keeps the user's precision.
        jax.config.update("jax_enable_x64", True)
    pages = marimo.create_asgi_app(quiet=True, html_head=STYLE)
    built = pages.with_app(path="", root=str(_PAGE if own else _PROGRAM_PAGE)).build()
    return TrustedHostMiddleware(built, allowed_hosts=list(LOCAL_HOSTS) if local else ["*"])


def _prepare() -> None:
    """Compile the programs of the first moves while the page loads."""
    if shown_study().name:
        prepare(shown_study())
        return
    import jax

    jax.config.update("jax_enable_x64", True)
    from predcp.explore._choices import COLUMNS, Choices
    from predcp.explore._scene import scene

    for model in ("linear", "logistic"):
        scene(Choices(model))
    for columns in COLUMNS:
        scene(Choices(columns=columns))


def check(made: Study | None = None) -> str:
    """Run every cell of the page without a server; the words that it opens with.

    **Arguments**: `made`, as in `serve`. A program that the page refuses raises a ValueError.
    """
    show(made)
    if made is not None:
        from predcp.explore.program_app import app as page

        if made.problem:
            raise ValueError(f"{made.name} cannot be explored: {made.problem}")
        _, found = page.run()
        remarks = [] if made.audit is None else made.audit.remarks
        return "\n".join([*(scene.yours for scene in found["scenes"].values()), *remarks])
    import jax

    from predcp.explore.app import app as page

    jax.config.update("jax_enable_x64", True)
    _, found = page.run()
    return str(found["scene"].headline)
