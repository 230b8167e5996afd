"""A claim: the right to run one cell, held by a locked file and released when its holder ends.

The lock is the kernel's (`flock`), so a runner that is killed holds nothing afterwards; the text of
the file only shows people who is running the cell.
"""

import fcntl
import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Claim:
    """One held claim; `staging` and `trash` are folders only its holder may touch."""

    path: Path
    descriptor: int

    @property
    def staging(self) -> Path:
        """Where the holder prepares the cell's folder."""
        return self.path.with_suffix(".new")

    @property
    def trash(self) -> Path:
        """Where the holder puts a folder it replaces."""
        return self.path.with_suffix(".old")

    @classmethod
    def take(cls, folder: Path, name: str) -> "Claim | None":
        """The claim on `name`, or None while another holder lives."""
        path = folder / f"{name}.claim"
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except FileNotFoundError:
                # The folder does not exist yet, or another runner removed it when it was empty.
                folder.mkdir(parents=True, exist_ok=True)
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return None
            if _is_still(path, descriptor):
                os.truncate(descriptor, 0)
                os.write(descriptor, f"{platform.node()} {os.getpid()}\n".encode())
                claim = cls(path, descriptor)
                # Remove folders of a holder that was killed while publishing.
                claim.clear()
                return claim
            # The last holder removed the file between our opening and locking it.
            os.close(descriptor)

    def clear(self) -> None:
        """Remove the holder's folders."""
        shutil.rmtree(self.staging, ignore_errors=True)
        shutil.rmtree(self.trash, ignore_errors=True)

    def release(self) -> None:
        """Release the claim and remove its files."""
        self.clear()
        # Remove it while still locked, so that nobody can lock a file that is about to go.
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def holder(folder: Path, name: str) -> str:
    """Who holds a claim, as `host pid`, for messages."""
    try:
        return (folder / f"{name}.claim").read_text().strip() or "another runner"
    except OSError:
        return "another runner"


def sweep(folder: Path) -> None:
    """Remove files of dead runners in a folder of claims, and the folder if it is empty."""
    names = {path.stem for path in folder.glob("*.*")}
    for name in names:
        claim = Claim.take(folder, name)
        if claim is not None:
            claim.release()
    try:
        folder.rmdir()
    except OSError:
        # Other runners are active, or there was no such folder.
        return


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
