"""Pack an experiment's folders into one file, and unpack them again."""

import shutil
from pathlib import Path

from predcp.experiments._packed import PackedCell, read_packed, write_packed
from predcp.experiments._record import decode, read_files
from predcp.experiments._store import Store, write_folder


def pack(store: Store) -> int:
    """Move every intact cell of an experiment into its packed file; return how many it then holds.

    Damaged folders and those of running cells stay as they are.
    """
    cells = dict(read_packed(store.packed_file))
    packed: list[Path] = []
    for folder in store.cell_folders():
        try:
            decode(str(folder), every_byte=True)
        except ValueError:
            continue
        cells[folder.name] = PackedCell(folder.name, read_files(str(folder)))
        packed.append(folder)
    if packed:
        write_packed(store.packed_file, list(cells.values()))
    for folder in packed:
        # A runner that is about to replace a cell holds its claim.
        claim = store.claim_name(folder.name)
        if claim is None:
            continue
        if read_files(str(folder)) == cells[folder.name].files:
            shutil.rmtree(folder)
        claim.release()
    store.sweep()
    if store.folder.is_dir() and not any(store.folder.iterdir()):
        store.folder.rmdir()
    return len(cells)


def unpack(store: Store) -> int:
    """Write the folders of a packed experiment and remove the packed file; return their number.

    A cell that has a folder already keeps it: the folder is newer.
    """
    cells = read_packed(store.packed_file)
    for name, cell in cells.items():
        folder = store.folder / name
        if folder.is_dir():
            continue
        claim = store.claim_name(name)
        if claim is None:
            raise RuntimeError(f"{folder} is being run; wait for that runner to end")
        write_folder(claim, folder, cell.files)
        claim.release()
    store.packed_file.unlink(missing_ok=True)
    store.sweep()
    return len(cells)
