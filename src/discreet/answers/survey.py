"""How persons were sampled: their weights, strata, clusters and replicate weights.

In: columns that describe persons. Out: a :class:`SurveyDesign`, which travels with the answers, and
covariances of estimates under its design. Weights are floating-point numbers and never enter counts
of pairs, which stay exact integers. Confidential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypedDict, cast

import numpy as np

from discreet.errors import BadResponses, BadUsage
from discreet.text import name_some
from discreet.types import FloatArray, IndexArray, Texts

REPLICATIONS = ("jk1", "jk2", "brr", "fay:K")


class DesignWords(TypedDict, total=False):
    """The keywords that name columns of a sampling design."""

    weight: str
    strata: str | None
    cluster: str | None
    replicates: str | Sequence[str] | None
    replication: str | None


def state_design(
    weight: str | None,
    strata: str | None,
    cluster: str | None,
    replicates: str | Sequence[str] | None,
    replication: str | None,
) -> DesignWords:
    """Return the keywords that are stated."""
    stated = (weight, strata, cluster, replicates, replication)
    design = zip(DesignWords.__annotations__, stated, strict=True)
    return cast(DesignWords, {word: column for word, column in design if column})


@dataclass(frozen=True)
class Replication:
    """How estimates with replicate weights make a variance.

    Attributes
    ----------
    name
        ``"jk1"``, ``"jk2"``, ``"brr"`` or ``"fay:K"``.
    fay
        The coefficient K, by which BRR perturbs weights instead of doubling or dropping them.
    """

    name: str
    fay: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Replication:
        """Read the name of a method.

        Examples
        --------
        >>> Replication.parse("Fay:0.5").find_factor(80)
        0.05
        """
        name, _, coefficient = text.strip().lower().partition(":")
        fay = _read_number(coefficient) if name == "fay" else 0.0
        known = name in ("jk1", "jk2", "brr") and not coefficient
        if not (known or (name == "fay" and 0 <= fay < 1)):
            raise BadUsage(
                f"replication must be one of {', '.join(REPLICATIONS)} with K from 0 to below 1; "
                f"found {text!r}. The documentation of the survey names it"
            )
        return cls(text.strip().lower(), fay)

    def find_factor(self, replicates: int) -> float:
        """Return what the sum of squared deviations is multiplied by."""
        if self.name == "jk1":
            return (replicates - 1) / replicates
        return 1.0 if self.name == "jk2" else 1.0 / (replicates * (1 - self.fay) ** 2)


@dataclass(frozen=True, eq=False)
class SurveyDesign:
    """The sampling design of persons.

    Attributes
    ----------
    weight
        Per person, divided by a power of two so that the mean is from 0.5 to 1; zero for persons
        outside the domain that is estimated.
    unit
        Per person, the number of its primary sampling unit (PSU).
    stratum_of
        Per PSU of the whole sample, the number of its stratum. PSUs stay where only some persons
        are looked at, so that these are a domain of the sample.
    replicates
        ``[person, replicate]``, or None without replicate weights.
    replication
        How the replicate weights were made.
    columns
        Names of the columns that all of this was read from.
    """

    weight: FloatArray
    unit: IndexArray
    stratum_of: IndexArray
    replicates: FloatArray | None = None
    replication: Replication | None = None
    columns: frozenset[str] = frozenset()

    def take(self, positions: IndexArray) -> SurveyDesign:
        """Return some of the persons."""
        rows = None if self.replicates is None else self.replicates[positions]
        weight, unit = self.weight[positions], self.unit[positions]
        return replace(self, weight=weight, unit=unit, replicates=rows)

    @classmethod
    def simple(cls, persons: int) -> SurveyDesign:
        """Return a simple random sample: everybody counts alike, and is a PSU."""
        return cls(np.ones(persons), np.arange(persons), np.zeros(persons, dtype=np.intp))

    @property
    def degrees(self) -> int:
        """Degrees of freedom of a variance: PSUs less strata, or those of the replicates."""
        if self.replicates is None or self.replication is None:
            return len(self.stratum_of) - len(np.unique(self.stratum_of))
        return int(self.replicates.shape[1]) - (self.replication.name == "jk1")

    @property
    def effective(self) -> float:
        """Effective sample size (Kish 1965): how many equal weights are worth as much."""
        return float(self.weight.sum() ** 2 / (self.weight**2).sum())

    @property
    def in_domain(self) -> IndexArray:
        """Positions of the persons whose weight is not zero."""
        return np.flatnonzero(self.weight > 0)

    def linearise(self, moves: FloatArray) -> FloatArray:
        """Return the covariance of an estimate by linearisation (Binder 1983).

        Parameters
        ----------
        moves
            ``[person, parameter]``: by how much each person, with its weight, moves the estimate.

        Notes
        -----
        PSUs count as drawn with replacement: the totals of the PSUs of a stratum vary about their
        mean, with n / (n - 1) for its n PSUs.
        """
        deviation = self.deviate(moves)
        return np.asarray(deviation.T @ deviation)

    def deviate(self, moves: FloatArray) -> FloatArray:
        """Return deviations whose squares add up to the design's variance.

        Parameters
        ----------
        moves
            As for :meth:`linearise`.

        Returns
        -------
        deviation
            ``[PSU, parameter]``, or ``[replicate, parameter]`` with replicate weights: ``a' b`` is
            the covariance of two estimates, also where they are about different persons of one
            sample, such as groups that share schools. Replicates are linear: what an estimate moves
            by where persons get their replicate weights.
        """
        if self.replicates is not None and self.replication is not None:
            weight, ratio = self.weight[:, None], np.ones_like(self.replicates)
            np.divide(self.replicates, weight, out=ratio, where=weight > 0)
            factor = self.replication.find_factor(self.replicates.shape[1])
            return np.asarray(np.sqrt(factor) * ((ratio - 1).T @ moves))
        stratum = self.stratum_of
        size = np.bincount(stratum)
        total = np.zeros((len(stratum), moves.shape[1]))
        np.add.at(total, self.unit, moves)
        mean = np.zeros((len(size), moves.shape[1]))
        np.add.at(mean, stratum, total)
        mean /= np.maximum(size, 1)[:, None]
        scale = np.sqrt(size / np.maximum(size - 1, 1))[stratum]
        return np.asarray((total - mean[stratum]) * scale[:, None])

    def test_zero(self, value: FloatArray, moves: FloatArray) -> DesignTest:
        """Test that some numbers are zero, from how persons move them.

        Parameters
        ----------
        value, moves
            The numbers, and ``[person, number]`` as for :meth:`linearise`.
        """
        # The metric: persons are independent; its scale cancels.
        score = moves / np.sqrt(self.weight)[:, None]
        return apply_rao_scott(value, self.deviate(moves), score.T @ score, max(self.degrees, 1))

    def take_as_simple(self, moves: FloatArray) -> FloatArray:
        """Return scores whose squares add up to the variance of a simple random sample."""
        chosen = self.in_domain
        weight = self.weight[chosen]
        score = moves[chosen] / weight[:, None]
        share = weight / weight.sum()
        centred = (score - share @ score) * np.sqrt(share)[:, None]
        return np.asarray(centred * weight.sum() / np.sqrt(max(len(chosen) - 1, 1)))

    def replicate(
        self, estimate: FloatArray, solve: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Return the covariance of an estimate from fits with replicate weights."""
        if self.replicates is None or self.replication is None:
            raise BadUsage("there are no replicate weights")
        moved = np.stack([solve(column) for column in self.replicates.T]) - estimate
        return np.asarray(moved.T @ moved) * self.replication.find_factor(len(moved))


@dataclass(frozen=True)
class DesignTest:
    """A test that some numbers are all zero: chi-squared as corrected for the design."""

    statistic: float
    degrees: int
    p_value: float


def apply_rao_scott(
    value: FloatArray, deviation: FloatArray, working: FloatArray, degrees: int
) -> DesignTest:
    """Test that numbers are zero under a sampling design.

    Parameters
    ----------
    value
        The numbers.
    deviation
        From :meth:`SurveyDesign.deviate`, ``[PSU, number]``.
    working
        Their covariance in a simple random sample. It is the metric of the test, and need not be
        right: what it lacks is in the correction.
    degrees
        Degrees of freedom of the design.

    Notes
    -----
    ``X = value' working^-1 value`` is a sum of chi-squares with the eigenvalues of ``working^-1
    covariance`` as weights. X over the sum t of the weights is compared with the F distribution
    with f and f times ``degrees`` degrees of freedom, ``f = t^2 / sum of squared weights``. Of one
    number that is Student's test. The design may have fewer degrees of freedom than there are
    numbers, unlike for a Wald test.

    References
    ----------
    Rao, J. N. K. and Scott, A. J. (1984). On chi-squared tests for multiway contingency tables with
    cell proportions estimated from survey data. Annals of Statistics 12(1), 46-60. Thomas, D. R.
    and Rao, J. N. K. (1987). Small-sample comparisons of level and power for simple goodness-of-fit
    statistics under cluster sampling. Journal of the American Statistical Association 82, 630-636.
    """
    from scipy.special import fdtrc

    inverse = np.linalg.pinv(working, rcond=1e-10, hermitian=True)
    rank = int(np.linalg.matrix_rank(working, rtol=1e-10, hermitian=True))
    effects = inverse @ (deviation.T @ deviation)
    total = float(np.trace(effects))
    if not (rank and total > 0):
        return DesignTest(float("nan"), 0, float("nan"))
    ratio = float(value @ inverse @ value) / total
    freedom = total**2 / float((effects * effects.T).sum())
    p_value = float(fdtrc(freedom, freedom * degrees, ratio))
    return DesignTest(ratio * rank, rank, p_value)


def make_sample(
    groups: Mapping[str, Texts],
    persons: Texts,
    *,
    weight: str,
    strata: str | None = None,
    cluster: str | None = None,
    replicates: str | Sequence[str] | None = None,
    replication: str | None = None,
) -> SurveyDesign:
    """Read a sampling design from columns that describe persons.

    Parameters
    ----------
    groups
        The columns, a text per person.
    persons
        Ids, for messages.
    weight, strata, cluster
        Names of columns. Clusters are nested in strata; without them every person is a PSU.
    replicates
        Names or patterns (``"repwt*"``) of the columns with replicate weights.
    replication
        How these were made: ``"jk1"``, ``"jk2"``, ``"brr"`` or ``"fay:0.5"``.

    Raises
    ------
    BadResponses
        If a weight is missing, negative or no number, or if a stratum has one PSU only.
    """
    names = find_columns(groups, replicates)
    if names and (strata is not None or cluster is not None):
        raise BadUsage(
            "replicate weights hold strata and clusters already; leave strata= (--strata) and "
            "cluster= (--cluster) out, or replicates= (--replicates)"
        )
    if bool(names) != (replication is not None):
        raise BadUsage(
            "replicates= (--replicates) needs replication= (--replication) and the other way "
            f"round: say how the replicate weights were made, one of {', '.join(REPLICATIONS)}"
        )
    method = None if replication is None else Replication.parse(replication)
    weights = read_weights(groups, weight, persons)
    if not (weights > 0).any():
        raise BadResponses(f"column '{weight}': all weights are zero, so nobody is in the domain.")
    units = _number_units(groups, persons, strata, cluster)
    copies = [read_weights(groups, name, persons) for name in names]
    # The power of two above their mean: dividing by it rounds nothing.
    exponent = np.frexp((weights / np.count_nonzero(weights)).sum())[1]
    replicate_weights = np.ldexp(np.stack(copies, axis=1), -exponent) if copies else None
    columns = frozenset({weight, strata or weight, cluster or weight, *names})
    return SurveyDesign(np.ldexp(weights, -exponent), *units, replicate_weights, method, columns)


def find_columns(
    groups: Mapping[str, Texts], patterns: str | Sequence[str] | None
) -> tuple[str, ...]:
    """Return the columns that patterns name, in their order."""
    if patterns is None:
        return ()
    listed = [patterns] if isinstance(patterns, str) else list(patterns)
    names = tuple(n for n in groups if any(fnmatchcase(n, pattern) for pattern in listed))
    if len(names) < 2:
        raise BadUsage(
            f"replicates= (--replicates) asks for columns like {name_some(listed)}; found "
            f"{len(names)} of them, and a variance needs at least 2"
        )
    return names


def read_weights(groups: Mapping[str, Texts], name: str, persons: Texts) -> FloatArray:
    """Return a column of weights as numbers that are not negative."""
    texts = _column(groups, name, "weight")
    values = np.array([_read_number(text) for text in texts])
    bad = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        row = int(bad[0])
        problem = f"the weight {texts[row]!r}" if texts[row].strip() else "no weight"
        more = f" (and {len(bad) - 1:,} more persons)" if len(bad) > 1 else ""
        raise BadResponses(
            f"row {row + 1}, column '{name}': person '{persons[row]}' has {problem}{more}. A "
            "weight is a number from 0 on. Give persons outside the domain the weight 0, and leave "
            "out persons whose weight is not known."
        )
    return values


def _read_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _column(groups: Mapping[str, Texts], name: str, option: str) -> Texts:
    if name not in groups:
        raise BadUsage(
            f"{option}= (--{option}) names the column '{name}', which these answers do not have. "
            f"Read them with group='{name}' (--group), or give the table itself."
        )
    return groups[name]


def _number_units(
    groups: Mapping[str, Texts], persons: Texts, strata: str | None, cluster: str | None
) -> tuple[IndexArray, IndexArray]:
    """Return the PSU of every person, and the stratum of every PSU."""
    stratum, names = np.zeros(len(persons), dtype=np.intp), np.array(["all persons"], dtype=object)
    if strata is not None:
        names, stratum = _number_texts(groups, strata, "strata", persons)
    unit = np.arange(len(persons))
    if cluster is not None:
        number = _number_texts(groups, cluster, "cluster", persons)[1]
        # The same name in two strata means two clusters.
        unit = np.unique(stratum * len(persons) + number, return_inverse=True)[1].reshape(-1)
    stratum_of = np.zeros(int(unit.max(initial=-1)) + 1, dtype=np.intp)
    stratum_of[unit] = stratum
    alone = np.flatnonzero(np.bincount(stratum_of, minlength=len(names)) == 1)
    if len(alone):
        listed = name_some([f"'{names[i]}'" for i in alone])
        raise BadResponses(
            f"strata with one primary sampling unit only: {listed}. Nothing says how units of such "
            "a stratum vary. Join each with the stratum that is most like it."
        )
    return unit, stratum_of


def _number_texts(
    groups: Mapping[str, Texts], name: str, option: str, persons: Texts
) -> tuple[Texts, IndexArray]:
    texts = _column(groups, name, option)
    empty = np.flatnonzero(texts == "")
    if len(empty):
        row = int(empty[0])
        raise BadResponses(
            f"row {row + 1}, column '{name}': person '{persons[row]}' has no value. Every person "
            f"needs a value of {option}= (--{option}), also with the weight 0."
        )
    values, number = np.unique(texts.astype(str), return_inverse=True)
    return values, number.reshape(-1)


#: Why a release is refused.
RAKED = (
    "weights are functions of the whole sample (they are raked to totals of the population), so "
    "that one person changes the weights of everybody, and no bound on what one person contributes "
    "holds. Release the answers without weights, and say so"
)


def refuse_weights(sample: SurveyDesign | None, feature: str, reason: str) -> None:
    """Refuse what has no meaning, or another law, where persons have weights."""
    if sample is not None:
        raise BadUsage(f"{feature} is refused where persons have weights: {reason}")
