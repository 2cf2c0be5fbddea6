"""The gates: what an element and the RMSE of an output may be off by (docs/correctness.md derives them).

In low precision the floors are what rounding alone costs (½ ulp for an element, ulp / √12 for RMSE): the error of a
careless accumulator must not hide below them. In full precision the honest implementation is one of many orders of
summation and one of many exps, so its own error says little at the scale of an ulp. So it is asked twice, the second
time on inputs that are off by an ulp, and the larger error counts (up to what tf32 costs, for answers that jump); the
floors are 32 ulp for an element (256 in float64), for exp2(d · log2 e) is off by |d| ulp and 67 were seen, and 3 ulp
for RMSE; both grow by one ulp for 4096 terms (up to 2^18), as a thread loses half an ulp with every addition of equal
terms; and w and r are 16. The honest errors that were simulated, 32 lanes that add one by one included, stay below 1,
and the least that a careless one gets (tf32 and fp16 round at 4096 ulp) is some 50. Below float32's smallest normal
number a GPU may flush to zero, so that much is always allowed.

What float32 loses before an output is rounded is judged by 16 in low precision too; there it shows only where terms
cancel. A row's error may be that of a single number, right by luck, so a row is granted what rows typically lose.

In a draw of equal elements an output's elements share one error, so that their RMSE is held to what an element is, in
both precisions. And who adds n equal terms in one float32 accumulator, as nearly every product of matrices does, loses
up to n / 3 of its ulp there (half an ulp of each partial sum, all in one direction: n / 4 in the last binade, a quarter
of it in the one before, and so on): that is granted for as many terms as one thread may add up. A mean is then off by
so many ulp, and what follows from it by so many times what one ulp does, which the moved inputs show: a layer norm
divides a mean's error by √eps. Where only many of the elements are equal, the terms of a softmax's sum still are, and
its whole row has the error of that sum: so in full precision all of this holds there too.
"""

import math
from typing import Literal

from msgspec import Struct

from kernelci.reference import Budget
from kernelci.workbench.narrow import Float

HALF_ULP = 0.5
WORST_FACTOR = {"full": 16.0, "low": 4.0}
RMSE_FACTOR = {"full": 16.0, "low": 1.5}
TERMS_PER_ULP = 4096
# Beyond so many terms nothing more is granted. A last axis of a million elements that nobody adds up, as a vector's may
# be, would allow what fp16 and tf32 lose; and who adds up a million has more threads to do it with.
MOST_TERMS = 2**18
RMSE_FLOOR_ULP = {"full": 3.0, "low": 1 / math.sqrt(12)}
EQUAL_TERM_ULP = 1 / 3  # what each of equal terms may add to the error of a sum in one accumulator
MOST_IN_ONE = 2**17  # terms in one accumulator
ACCUMULATOR_EPS = 2.0**-23  # of float32; float64 has its own
Equal = Literal["few", "many", "all"]  # how many of a draw's elements are equal; all: at least along a row


class Gates(Struct, frozen=True):
    """What one element and the RMSE may be off by: a factor, and what it is of where the honest error is less, ulp.

    `lost`, `lost_rmse`: the factors on what arithmetic costs before the output is rounded. `one_way`: how many
    times an ulp's error a sum of equal elements may have. `shared`: all elements have one error, so that cosine, which
    is blind to a common factor, says nothing.
    """

    worst: float
    worst_floor: float
    rmse: float
    rmse_floor: float
    lost: float
    lost_rmse: float
    one_way: float = 0.0
    shared: bool = False


def gates(precision: str, kind: Float, budget: Budget, terms: int, equal: Equal, in_one: int) -> Gates:
    """The gates of an output of this precision and type; `terms`, `equal` and `in_one` as in `compare`."""
    worst, rmse = budget.worst or WORST_FACTOR[precision], budget.rmse or RMSE_FACTOR[precision]
    worst_floor, rmse_floor, one_way = HALF_ULP, RMSE_FLOOR_ULP[precision], 0.0
    lost = budget.worst or WORST_FACTOR["full"]
    if precision == "full":
        more = min(terms, MOST_TERMS) / TERMS_PER_ULP
        # A quarter of the range of exponents: 32 for float32.
        worst_floor, rmse_floor = max(32.0, -math.log2(kind.smallest_normal) / 4) + more, rmse_floor + more
    if equal == "all" or (equal == "many" and precision == "full"):
        more = EQUAL_TERM_ULP * min(in_one, MOST_IN_ONE)
        one_way = more / lost
        worst_floor += more / worst * min(ACCUMULATOR_EPS / kind.eps, 1.0)
        rmse, rmse_floor = (rmse, rmse_floor) if budget.rmse else (worst, worst_floor)
    lost_rmse = rmse if precision == "full" else lost
    return Gates(worst, worst_floor, rmse, rmse_floor, lost, lost_rmse, one_way, equal == "all")
