"""Load a few-shot image set by name."""

import os

from predcp.data._cifar100 import load_cifar100, load_cifar100_by_class
from predcp.data._errors import DataError
from predcp.data._images import ImageClasses
from predcp.data._mini_imagenet import load_mini_imagenet
from predcp.data._omniglot import load_omniglot, load_omniglot_rotated

_LOADERS = {
    "fc100": load_cifar100,
    "cifar100": load_cifar100,
    "cifar100-by-class": load_cifar100_by_class,
    "omniglot": load_omniglot,
    "omniglot-rotated": load_omniglot_rotated,
    "mini-imagenet": load_mini_imagenet,
}


def load_images(
    name: str, part: str, directory: str | os.PathLike[str] | None = None
) -> ImageClasses:
    """The `train`, `validation` or `test` classes of an image set.

    **Arguments:** `name`: `fc100`, `cifar100-by-class`, `omniglot`, `omniglot-rotated` (training
    characters also turned by 90, 180 and 270 degrees, as classes of their own) or `mini-imagenet`.
    """
    if name not in _LOADERS:
        raise DataError(f"no image set is called {name!r}; there are: {', '.join(_LOADERS)}")
    return _LOADERS[name](part, directory)
