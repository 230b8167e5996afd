"""The one error of this room: a data set that is missing, damaged or unusable."""


class DataError(ValueError):
    """A data set cannot be used; the message names it, the reason and what to do."""
