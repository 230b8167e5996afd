"""A fit that stopped because its time was up."""


class Paused(KeyboardInterrupt):
    """The time limit was reached; a checkpoint holds the state.

    A KeyboardInterrupt, so that a runner of grids stops without a result, as after Ctrl-C.
    """
