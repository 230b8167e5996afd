"""Read the arrays in an official pickle without letting it call anything else."""

import pickle
from typing import IO, Any

import numpy as np

# All that Python 2 wrote for a dictionary of lists, strings and one array.
_ALLOWED = {
    ("numpy.core.multiarray", "_reconstruct"): np.empty(0).__reduce__()[0],
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
}


class _ArrayUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str) -> Any:
        try:
            return _ALLOWED[module_name, global_name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"the file asks for {module_name}.{global_name}, which no data file needs"
            ) from None


def load_arrays(file: IO[bytes]) -> dict[str, Any]:
    """The dictionary in a pickle of plain values and arrays; any other global is refused."""
    content = _ArrayUnpickler(file, encoding="latin1").load()
    if not isinstance(content, dict):
        raise pickle.UnpicklingError(f"expected a dictionary, found {type(content).__name__}")
    return content
