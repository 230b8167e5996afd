"""Serve the explorer to this machine's own browser, and to nobody else unless asked."""

import sys
import threading
import webbrowser
from pathlib import Path

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")
_PAGE = Path(__file__).parent / "app.py"


def serve(host: str = "127.0.0.1", port: int = 2718, browser: bool = True) -> None:
    """Run the explorer until it is interrupted.

    **Arguments**: the address to listen on; the port; whether to open a browser.
    """
    import uvicorn

    if host not in LOCAL_HOSTS:
        print(
            f"predcp: warning: --host {host} lets other machines reach the explorer. It has no "
            "password; whoever can connect can use it and upload files to its memory.",
            file=sys.stderr,
        )
    address = f"http://{'[' + host + ']' if ':' in host else host}:{port}"
    print(f"predcp explore: {address} (Ctrl-C to stop)", flush=True)
    if browser:
        timer = threading.Timer(1.5, webbrowser.open, [address])
        timer.daemon = True
        timer.start()
    threading.Thread(target=_prepare, daemon=True).start()
    uvicorn.run(application(), host=host, port=port, log_level="warning")


def application():
    """The page as an ASGI application, double precision switched on."""
    import jax
    import marimo

    # The curves run from 1e-8 to poles and tails.
    jax.config.update("jax_enable_x64", True)
    return marimo.create_asgi_app(quiet=True).with_app(path="", root=str(_PAGE)).build()


def _prepare() -> None:
    """Compile what the first moves will need, while the page loads."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from predcp.explore._choices import COLUMNS, Choices
    from predcp.explore._scene import scene

    for model in ("linear", "logistic"):
        scene(Choices(model))
    for columns in COLUMNS:
        scene(Choices(columns=columns))
