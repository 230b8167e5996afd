"""Load a few-shot image set by name."""

import os

from predcp.data._cifar100 import load_cifar100
from predcp.data._errors import DataError
from predcp.data._images import ImageClasses
from predcp.data._mini_imagenet import load_mini_imagenet
from predcp.data._omniglot import load_omniglot

_LOADERS = {
    "fc100": load_cifar100,
    "cifar100": load_cifar100,
    "omniglot": load_omniglot,
    "mini-imagenet": load_mini_imagenet,
}


def load_images(
    name: str, part: str, directory: str | os.PathLike[str] | None = None
) -> ImageClasses:
    """The `train`, `validation` or `test` classes of `fc100`, `omniglot` or `mini-imagenet`."""
    if name not in _LOADERS:
        raise DataError(f"no image set is called {name!r}; there are: {', '.join(_LOADERS)}")
    return _LOADERS[name](part, directory)
