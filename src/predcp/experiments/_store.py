"""The result store: one folder per cell, written in a single step, or one packed file."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from predcp.experiments import _claim
from predcp.experiments._cell import Cell
from predcp.experiments._claim import Claim
from predcp.experiments._packed import SUFFIX, is_foreign, read_packed
from predcp.experiments._record import CorruptRecord, Record, decode, decode_files, encode
from predcp.experiments._result import Outcome

DEFAULT_STORE = "results"
REPORT_FOLDER = "report"
_CLAIMS_FOLDER = ".claims"

Status = Literal["absent", "finished", "failed", "corrupt"]


@dataclass(frozen=True)
class Records:
    """Records of a store."""

    finished: list[Record]
    failed: list[Record]
    corrupt: list[CorruptRecord]


@dataclass(frozen=True)
class Store:
    """The cells of one experiment below a folder of results.

    New cells are folders below `folder`; `predcp.experiments.pack` moves them into `packed_file`.
    A cell that is in both is read from its folder, which is newer.
    """

    path: Path
    experiment: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.experiment):
            raise ValueError(
                f"experiment must be a plain folder name, got {self.experiment!r}: use letters, "
                "digits, '.', '_' and '-'"
            )

    @property
    def folder(self) -> Path:
        """The experiment's folder."""
        return self.path / self.experiment

    @property
    def packed_file(self) -> Path:
        """Where packed cells are."""
        return self.path / f"{self.experiment}{SUFFIX}"

    @property
    def exists(self) -> bool:
        """Whether the experiment has any stored file."""
        return self.folder.is_dir() or self.packed_file.is_file()

    def cell_folder(self, cell: Cell) -> Path:
        """Where the cell's files are, or would be."""
        return self.folder / cell.name

    def status(self, cell: Cell) -> Status:
        """Status of a cell."""
        if not self.cell_folder(cell).is_dir() and cell.name not in read_packed(self.packed_file):
            return "absent"
        try:
            record = self.read(cell)
        except CorruptRecord:
            return "corrupt"
        return "failed" if record.failed else "finished"

    def read(self, cell: Cell) -> Record:
        """A cell's record, all its files verified."""
        folder, packed = self.cell_folder(cell), read_packed(self.packed_file)
        if cell.name in packed and not folder.is_dir():
            where = f"{self.packed_file}, {cell.name}"
            record = decode_files(packed[cell.name].files, where)
        else:
            record = decode(str(folder), every_byte=True)
        if record.cell != cell:
            raise CorruptRecord(f"{self.cell_folder(cell)} holds another cell")
        return record

    def claim(self, cell: Cell) -> Claim | None:
        """The right to run a cell, or None while another runner has it."""
        return self.claim_name(cell.name)

    def claim_name(self, name: str) -> Claim | None:
        """The right to change the cell with that folder name, or None while another has it."""
        return Claim.take(self._claims, name)

    def holder(self, cell: Cell) -> str:
        """Who is running a cell, for messages."""
        return _claim.holder(self._claims, cell.name)

    def publish(self, claim: Claim, cell: Cell, outcome: Outcome, rerun: str) -> None:
        """Put a cell's files in place at once; a reader sees all of them or none."""
        write_folder(claim, self.cell_folder(cell), encode(cell, outcome, rerun))

    def sweep(self) -> None:
        """Remove files of dead runners."""
        _claim.sweep(self._claims)

    def cell_folders(self) -> list[Path]:
        """The cells' folders in the order of their names, whatever is in them."""
        if not self.folder.is_dir():
            return []
        with os.scandir(self.folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir())
        kept = (name for name in names if not name.startswith(".") and name != REPORT_FOLDER)
        return [self.folder / name for name in kept]

    def records(self) -> Records:
        """Every cell's record in the order of their names; damaged ones apart, with the reason."""
        found: dict[str, Record | CorruptRecord] = {}
        for name, cell in read_packed(self.packed_file).items():
            try:
                found[name] = decode_files(cell.files, f"{self.packed_file}, {name}")
            except CorruptRecord as error:
                found[name] = error
        for folder in self.cell_folders():
            try:
                found[folder.name] = decode(str(folder))
            except CorruptRecord as error:
                found[folder.name] = error
        finished, failed, corrupt = [], [], []
        for _, record in sorted(found.items()):
            if isinstance(record, CorruptRecord):
                corrupt.append(record)
            else:
                (failed if record.failed else finished).append(record)
        return Records(finished, failed, corrupt)

    @property
    def _claims(self) -> Path:
        return self.folder / _CLAIMS_FOLDER


def experiments(path: Path) -> list[str]:
    """The experiments that have a folder or a packed file in a store, without foreign files."""
    if not path.is_dir():
        return []
    other = foreign_files(path)
    names = {
        entry.name if entry.is_dir() else entry.name.removesuffix(SUFFIX)
        for entry in path.iterdir()
        if entry.is_dir() or (entry.name.endswith(SUFFIX) and entry.name not in other)
    }
    return sorted(name for name in names if not name.startswith("."))


def foreign_files(path: Path) -> list[str]:
    """Parquet files in the folder of a store that hold no cells."""
    return sorted(
        entry.name for entry in path.glob(f"*{SUFFIX}") if entry.is_file() and is_foreign(entry)
    )


def write_folder(claim: Claim, target: Path, files: Mapping[str, bytes]) -> None:
    """Put the files of a cell in place at once; a reader sees all of them or none."""
    claim.staging.mkdir()
    for name, content in files.items():
        _write_durably(claim.staging / name, content)
    if target.exists():
        target.rename(claim.trash)
    claim.staging.rename(target)
    _sync_folder(target.parent)


def _write_durably(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
