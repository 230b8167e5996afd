"""Cells as tasks on an existing Ray cluster; the driver alone keeps the store.

The nodes need no shared disk, and Ray runs a task again when the node that had it is lost.
"""

import importlib
import logging
import signal
import socket
import threading
from typing import Any

from predcp._version import __version__
from predcp.experiments._cell import Cell
from predcp.experiments._environment import environment
from predcp.experiments._execute import execute
from predcp.experiments._result import Context, Outcome

# Two cells a slot, so that a node that finishes one does not wait for the driver.
_CELLS_PER_SLOT = 2
_RETRIES = 5


class RayEngine:
    """Runs cells on the nodes of a Ray cluster."""

    def __init__(
        self,
        context: Context,
        address: str | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
    ) -> None:
        """**Arguments:** the cluster's `address` (default: the one `ray` finds); a cell's needs."""
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError:
            raise ModuleNotFoundError(
                "the ray engine needs ray: pip install 'predcp[cluster]'"
            ) from None
        self._ray = ray
        self._context = context
        self._owns_connection = not ray.is_initialized()
        if self._owns_connection:
            _connect(ray, address)
        options = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": _RETRIES}
        self._task = ray.remote(**options)(_run_on_node)
        self._per_cell = cpus
        self._running: dict[Any, Cell] = {}

    @property
    def capacity(self) -> int:
        """Two cells for each slot of the cluster as it is now (nodes come and go)."""
        slots = self._ray.cluster_resources().get("CPU", 1.0) / max(self._per_cell, 0.1)
        return max(_CELLS_PER_SLOT * int(slots), 1)

    def submit(self, cell: Cell) -> None:
        """Queue the cell on the cluster."""
        self._running[self._task.remote(cell, self._context, __version__)] = cell

    def collect(self, timeout: float) -> list[tuple[Cell, Outcome]]:
        """Outcomes that arrived within `timeout` seconds."""
        if not self._running:
            return []
        references = list(self._running)
        ready, _ = self._ray.wait(references, num_returns=1, timeout=timeout)
        if ready:
            ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        return [(self._running.pop(reference), self._outcome(reference)) for reference in ready]

    def close(self) -> None:
        """Cancel what is queued and leave the cluster."""
        for reference in self._running:
            self._ray.cancel(reference, force=True)
        self._running.clear()
        if self._owns_connection:
            self._ray.shutdown()

    def _outcome(self, reference: Any) -> Outcome:
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            message = f"the cluster lost this cell {_RETRIES + 1} times: {error}"
            return Outcome(0.0, environment(), traceback=message)


def _connect(ray: Any, address: str | None) -> None:
    try:
        if address is not None:
            # Ray itself would try for minutes before it says that nobody is there.
            host, _, port = address.rpartition("/")[2].rpartition(":")
            socket.create_connection((host, int(port)), timeout=10).close()
        before = signal.getsignal(signal.SIGTERM)
        ray.init(address or "auto", log_to_driver=False, logging_level=logging.ERROR)
        if threading.current_thread() is threading.main_thread():
            # Ray would end the process at once; the caller's way of stopping cleans up.
            signal.signal(signal.SIGTERM, before)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Ray cluster answers at {address or 'the default address'} ({error}); start one "
            "with `ray start --head`, or give its --address HOST:PORT"
        ) from error


def _run_on_node(cell: Cell, context: Context, driver_version: str) -> Outcome:
    if __version__ != driver_version:
        message = f"the node has predcp {__version__}, the driver {driver_version}: install one"
        return Outcome(0.0, environment(), traceback=message)
    return execute(cell, context)
