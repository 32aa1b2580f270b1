"""The concepts of masked parity (KLNRS Section 5)."""

from dataclasses import dataclass

NULL_SHARE = 0.5  # half of the examples say nothing about the bit a round asks for: D is uniform, so this is known


@dataclass(frozen=True)
class Concept:
    """The concept c_{r,a}: y = (-1)^(<r,x> + a) where b = 0 and (-1)^(r_i) where b = 1; bit i of the number r is r_i."""

    d: int
    r: int
    a: int

    def error(self, other: "Concept") -> float:
        """Pr[the two concepts differ] under the uniform distribution."""
        apart = (self.r ^ other.r).bit_count()
        masked = 0.5 if apart else float(self.a != other.a)
        return (masked + apart / self.d) / 2

    def bit(self, place: int) -> int:
        """r_i at i = `place`."""
        return self.r >> place & 1

    def disagreement(self, r: int) -> float:
        """Pr[y differs from (-1)^<r, x>] where b = 0: a for the right r; a wrong one leaves a uniform sign."""
        return float(self.a) if r == self.r else 0.5
