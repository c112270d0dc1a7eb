# pyright: strict
"""What type checkers know of answers. It is checked, and not run."""

import bellwether as bw


def flipped() -> int:
    """The number of turned signals."""
    return bw.revisions("demo").totals["signals"]["total"]["flipped"]


def coverage() -> float | None:
    """How much of what was due there is."""
    return bw.quality("demo").totals["total"]["coverage"]


def correlations() -> list[float | None]:
    """The mean rank correlation of each pair and state."""
    pairs = bw.skill("demo").totals["pairs"]
    return [measure["correlation"] for pair in pairs for measure in pair["measures"]]


def removed(before: str) -> int:
    """The rows that left."""
    return bw.diff("demo", before).totals["removed"]
