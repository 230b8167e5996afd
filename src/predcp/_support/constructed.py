"""What type checkers see when a distribution of ours is made: its class, not `Any`."""

from typing import TYPE_CHECKING, Any, TypeVar

from numpyro.distributions.distribution import DistributionMeta

if TYPE_CHECKING:
    _Made = TypeVar("_Made")

    class Constructed(DistributionMeta):
        """NumPyro's metaclass, whose calls return an instance."""

        def __call__(cls: type[_Made], *args: Any, **kwargs: Any) -> _Made: ...

else:
    Constructed = DistributionMeta
