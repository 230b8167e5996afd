"""Designs grouped by what a modeller knows beforehand."""

SITUATIONS: dict[str, tuple[str, ...]] = {
    "3 to 8 studies": ("schools-3", "schools-5", "schools-8"),
    "8 precise studies": ("schools-8-precise",),
    "few groups, normal": ("dyestuff", "penicillin"),
    "many groups, normal": ("radon", "rats", "sleepstudy"),
    "curves": ("mcycle", "gp"),
    "rare events": ("ticks-0.01", "ticks-0.1", "surgical-0.01", "election-rare"),
    "counts and proportions": ("ticks-1", "surgical-0.1", "surgical-0.5", "election", "cbpp"),
    "high counts": ("ticks-10", "ticks-100", "birds"),
}
# Designs with at least so many groups, for the first prediction.
MANY_GROUPS = (
    "radon",
    "rats",
    "sleepstudy",
    *(f"ticks-{rate}" for rate in ("0.01", "0.1", "1", "10", "100")),
    "election",
    "election-rare",
    "cbpp",
)
