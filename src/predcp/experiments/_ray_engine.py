"""Cells as tasks on an existing Ray cluster; only the driver writes the store.

The nodes need no shared disk, and Ray runs a task again if its node is lost.
"""

import importlib
import logging
import signal
import socket
import threading
import time
from dataclasses import replace
from typing import Any

from predcp._support.environment import environment
from predcp._support.extras import install_command
from predcp._version import __version__
from predcp.experiments._cell import Cell
from predcp.experiments._engine import Report, reporting
from predcp.experiments._execute import execute
from predcp.experiments._models import register_model, registered_models
from predcp.experiments._result import Context, Outcome

# Two cells per slot, so that a node that finishes one does not wait for the driver.
_CELLS_PER_SLOT = 2
_RETRIES = 5
# Seconds between updates of the progress.
_SECONDS_BETWEEN_LOOKS = 1.0


class RayEngine:
    """Runs cells on the nodes of a Ray cluster."""

    def __init__(
        self,
        context: Context,
        report: Report | None = None,
        address: str | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
    ) -> None:
        """**Arguments:** the cluster's `address` (default: the one `ray` finds); what one cell needs."""
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise ModuleNotFoundError(
                f"the ray engine needs ray: {install_command('cluster')}"
            ) from None
        self._ray = ray
        # A function cannot be sent to a node; an actor on the cluster passes progress back.
        self._context, self._report = replace(context, progress=None), report
        self._owns_connection = not ray.is_initialized()
        if self._owns_connection:
            _connect(ray, address)
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": _RETRIES}
        self._task = ray.remote(**options)(_run_on_node)
        self._per_cell = cpus
        self._board: Any = None if report is None else ray.remote(num_cpus=0)(_Board).remote()
        self._looked = time.monotonic()
        self._running: dict[Any, Cell] = {}

    @property
    def capacity(self) -> int:
        """Two cells for each slot of the cluster as it is now (nodes come and go)."""
        slots = self._ray.cluster_resources().get("CPU", 1.0) / max(self._per_cell, 0.1)
        return max(_CELLS_PER_SLOT * int(slots), 1)

    def submit(self, cell: Cell) -> None:
        """Queue the cell on the cluster."""
        arguments = (self._context, __version__, registered_models(), self._board)
        self._running[self._task.remote(cell, *arguments)] = cell

    def collect(self, timeout: float) -> list[tuple[Cell, Outcome]]:
        """Outcomes that arrived within `timeout` seconds."""
        if not self._running:
            return []
        self._show_progress()
        references = list(self._running)
        ready, _ = self._ray.wait(references, num_returns=1, timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        return [(self._running.pop(reference), self._outcome(reference)) for reference in ready]

    def close(self) -> None:
        """Cancel queued cells and disconnect from the cluster."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._owns_connection:
            self._ray.shutdown()

    def _show_progress(self) -> None:
        if (
            self._report is None
            or self._board is None
            or time.monotonic() - self._looked < _SECONDS_BETWEEN_LOOKS
        ):
            return
        self._looked = time.monotonic()
        try:
            shown = self._ray.get(self._board.take.remote(), timeout=_SECONDS_BETWEEN_LOOKS)
        except self._ray.exceptions.RayError:
            # The node of the actor is lost or busy: fits continue without progress.
            return
        for cell, progress in shown.items():
            self._report([cell], *progress)

    def _outcome(self, reference: Any) -> Outcome:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            message = f"the cluster lost this cell {_RETRIES + 1} times: {error}"
            return Outcome(0.0, environment(), traceback=message)


def _connect(ray: Any, address: str | None) -> None:
    try:
        if address is not None:
            # Ray itself would try for minutes before it reports that there is no cluster.
            host, _, port = address.rpartition("/")[2].rpartition(":")
            socket.create_connection((host, int(port)), timeout=10).close()
        before = signal.getsignal(signal.SIGTERM)
        ray.init(address or "auto", log_to_driver=False, logging_level=logging.ERROR)
        if threading.current_thread() is threading.main_thread():
            # Ray would end the process at once; the caller's handler cleans up.
            signal.signal(signal.SIGTERM, before)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Ray cluster answers at {address or 'the default address'} ({error}); start one "
            "with `ray start --head`, or give its --address HOST:PORT"
        ) from error


class _Board:
    """The latest progress of every running cell, kept by an actor on the cluster."""

    def __init__(self) -> None:
        self._latest: dict[Cell, tuple[int, int, str]] = {}

    def put(self, cell: Cell, progress: tuple[int, int, str]) -> None:
        """Replace the progress of a cell."""
        self._latest[cell] = progress

    def take(self) -> dict[Cell, tuple[int, int, str]]:
        """What changed since the last call."""
        latest, self._latest = self._latest, {}
        return latest


def _run_on_node(
    cell: Cell, context: Context, driver_version: str, models: dict[str, str], board: Any
) -> Outcome:
    if __version__ != driver_version:
        message = f"the node has predcp {__version__}, the driver {driver_version}: install one"
        return Outcome(0.0, environment(), traceback=message)
    for name, source in models.items():
        register_model(name, source)
    if board is not None:
        last = [float("-inf")]

        def put(cells: Any, *progress: Any) -> None:
            if time.monotonic() - last[0] >= _SECONDS_BETWEEN_LOOKS:
                last[0] = time.monotonic()
                board.put.remote(cell, progress)

        context = reporting(context, [cell], put)
    return execute(cell, context)
