"""The one error of this room: a data set that is missing, damaged or not fit for use."""


class DataError(ValueError):
    """A data set cannot be used; the message names it, the reason and the cure."""
