"""A fit that stopped because its time was up."""


class Paused(KeyboardInterrupt):
    """The time given was used up; a checkpoint holds all that was done.

    An interrupt, so that a runner of grids stops and records nothing, as for Ctrl-C.
    """
