"""Compiled loops over pairs of ratings; importing this module loads numba.

A rating with score x has passed the step x (if x >= 1) and failed the step x + 1 (if x is not the
highest score). In the loops ``passed`` and ``failed`` hold the columns of these two steps, -1 where
there is none, and ``levels[rating, term]`` the columns of its facets; ``table[rating, :]`` has all
of them, -1 for facets of a rating that has neither step. ``odds_passed`` and ``odds_failed`` are
exp(threshold) of the two. Ratings are compared within groups; a pair (a, b) is
the step that a passed beside the step that b failed, and q = odds(a) / (odds(a) + odds(b)).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.jit import compiled_loop

# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@compiled_loop
def find_largest(start, groups) -> Any:
    """Return how many ratings the largest of a range of groups has."""
    largest = 1
    for g in range(groups[0], groups[1]):
        largest = max(largest, start[g + 1] - start[g])
    return largest


@compiled_loop
def sum_scores(start, weight, columns, odds, groups, n_columns, scores) -> Any:
    """Return log-likelihood and gradient over a range of groups.

    The score of each rating is written to ``scores`` unless that is empty: ``[rating, 0]`` of its
    passed step, ``[rating, 1]`` of its failed one.
    """
    passed, failed, levels = columns
    odds_passed, odds_failed = odds
    gradient = np.zeros(n_columns)
    likelihood = 0.0
    rates = np.zeros((find_largest(start, groups), 2))
    for g in range(groups[0], groups[1]):
        low, high = start[g], start[g + 1]
        total, product = 0.0, 1.0
        rates[: high - low] = 0.0
        for a in range(low, high):
            if passed[a] < 0:
                continue
            passing = 0.0
            for b in range(low, high):
                if failed[b] < 0 or a == b:
                    continue
                q = odds_passed[a] / (odds_passed[a] + odds_failed[b])
                passing += q
                rates[b - low, 1] += q
                product *= 1.0 - q
                if product < 1e-200:
                    total += np.log(product + 1e-320)
                    product = 1.0
            rates[a - low, 0] = -passing
        for a in range(low, high):
            for side in range(2):
                node = passed[a] if side == 0 else failed[a]
                rate = weight[g] * rates[a - low, side]
                if len(scores):
                    scores[a, side] = rate
                if node >= 0:
                    gradient[node] += rate
                    for t in range(levels.shape[1]):
                        gradient[levels[a, t]] += rate
        likelihood += weight[g] * (total + np.log(product))
    return likelihood, gradient


@compiled_loop
def spread_scores(table, scores, person, factors, out) -> None:
    """Add each rating's scores, times the factors of its person, to ``out[column, draw]``."""
    for o in range(table.shape[0]):
        factor = factors[person[o]]
        for c in range(table.shape[1]):
            score = scores[o, c] if c < 2 else scores[o, 0] + scores[o, 1]
            if table[o, c] >= 0 and score != 0.0:
                for k in range(factor.shape[0]):
                    out[table[o, c], k] += score * factor[k]


@compiled_loop
def find_curvature(weight, passed, failed) -> Any:
    """Return w q (1 - q) of a pair with these odds."""
    both = passed + failed
    return weight * (passed / both) * (failed / both)


@compiled_loop
def multiply_pairs(start, weight, columns, odds, groups, vectors, out) -> None:
    """Add the second derivatives over a range of groups, times vectors ``[column, vector]``.

    A pair adds w q (1 - q) (z_b - z_a)(z_b - z_a)'. It needs its ratings' sums of the vectors only.
    """
    passed, failed, levels = columns
    odds_passed, odds_failed = odds
    n_vectors, n_terms = vectors.shape[1], levels.shape[1]
    largest = find_largest(start, groups)
    # Of passed steps, then of failed ones. Loops instead of slices, which would count references.
    sums, moves = np.zeros((2, largest, n_vectors)), np.zeros((2, largest, n_vectors))
    for g in range(groups[0], groups[1]):
        low, high = start[g], start[g + 1]
        for a in range(low, high):
            for side in range(2):
                node = passed[a] if side == 0 else failed[a]
                if node < 0:
                    continue
                for v in range(n_vectors):
                    sums[side, a - low, v] = vectors[node, v]
                    moves[side, a - low, v] = 0.0
                for t in range(n_terms):
                    for v in range(n_vectors):
                        sums[side, a - low, v] += vectors[levels[a, t], v]
        for a in range(low, high):
            if passed[a] < 0:
                continue
            for b in range(low, high):
                if failed[b] < 0 or a == b:
                    continue
                h = find_curvature(weight[g], odds_passed[a], odds_failed[b])
                for v in range(n_vectors):
                    move = h * (sums[1, b - low, v] - sums[0, a - low, v])
                    moves[1, b - low, v] += move
                    moves[0, a - low, v] -= move
        for a in range(low, high):
            for side in range(2):
                node = passed[a] if side == 0 else failed[a]
                if node < 0:
                    continue
                for v in range(n_vectors):
                    out[node, v] += moves[side, a - low, v]
                for t in range(n_terms):
                    for v in range(n_vectors):
                        out[levels[a, t], v] += moves[side, a - low, v]


@compiled_loop
def sum_matrix(start, weight, columns, odds, groups, size) -> Any:
    """Return the second derivatives between the first ``size`` columns, over a range of groups."""
    passed, failed, levels = columns
    odds_passed, odds_failed = odds
    n_terms = levels.shape[1]
    out = np.zeros((size, size))
    mass = np.zeros((find_largest(start, groups), 2))
    for g in range(groups[0], groups[1]):
        low, high = start[g], start[g + 1]
        mass[: high - low] = 0.0
        for a in range(low, high):
            if passed[a] < 0:
                continue
            for b in range(low, high):
                if failed[b] < 0 or a == b:
                    continue
                h = find_curvature(weight[g], odds_passed[a], odds_failed[b])
                mass[a - low, 0] += h
                mass[b - low, 1] += h
                for i in range(n_terms + 1):
                    row = passed[a] if i == 0 else levels[a, i - 1]
                    for j in range(n_terms + 1):
                        column = failed[b] if j == 0 else levels[b, j - 1]
                        if row < size and column < size:
                            out[row, column] -= h
        for a in range(low, high):
            for side in range(2):
                node, half = passed[a] if side == 0 else failed[a], mass[a - low, side] / 2
                if node < 0:
                    continue
                for i in range(n_terms + 1):
                    row = node if i == 0 else levels[a, i - 1]
                    for j in range(n_terms + 1):
                        column = node if j == 0 else levels[a, j - 1]
                        if row < size and column < size:
                            out[row, column] += half
    return out + out.T


@compiled_loop
def sum_diagonal(start, weight, columns, odds, groups, n_columns) -> Any:
    """Return the diagonal of the second derivatives over a range of groups."""
    passed, failed, levels = columns
    odds_passed, odds_failed = odds
    out = np.zeros(n_columns)
    for g in range(groups[0], groups[1]):
        for a in range(start[g], start[g + 1]):
            if passed[a] < 0:
                continue
            for b in range(start[g], start[g + 1]):
                if failed[b] < 0 or a == b:
                    continue
                h = find_curvature(weight[g], odds_passed[a], odds_failed[b])
                if passed[a] != failed[b]:
                    out[passed[a]] += h
                    out[failed[b]] += h
                for t in range(levels.shape[1]):
                    if levels[a, t] != levels[b, t]:
                        out[levels[a, t]] += h
                        out[levels[b, t]] += h
    return out


@compiled_loop
def list_links(start, codes, labels, most, links) -> int:
    """Write links between codes of different labels: who passed a step where whom failed one.

    At least the first ``most`` from and to each code. Returns how many there are, even where
    ``links`` has no room for all.
    """
    passed, failed = codes
    leaving, arriving = np.zeros(len(labels), np.int32), np.zeros(len(labels), np.int32)
    n = 0
    for g in range(len(start) - 1):
        for a in range(start[g], start[g + 1]):
            if passed[a] < 0:
                continue
            for b in range(start[g], start[g + 1]):
                u, v = passed[a], failed[b]
                if a == b or v < 0 or labels[u] == labels[v]:
                    continue
                if leaving[u] < most or arriving[v] < most:
                    leaving[u] += 1
                    arriving[v] += 1
                    if n < links.shape[1]:
                        links[0, n], links[1, n] = u, v
                    n += 1
    return n


@compiled_loop
def draw_scores(blocks, columns, most, thresholds, random, scores) -> None:
    """Draw scores of every block again, given the block's total, from the model's exact law.

    Parameters
    ----------
    blocks
        Where the ratings of each block start.
    columns
        Nodes of the first step of each rating's item, and its facets' columns.
    most
        The highest score of each rating.
    thresholds
        Of all columns.
    random
        Uniform numbers, one for each rating.
    scores
        The scores; replaced by drawn ones.
    """
    first, levels = columns
    widest, longest = 1, 1
    for g in range(len(blocks) - 1):
        longest = max(longest, blocks[g + 1] - blocks[g])
    for o in range(len(most)):
        widest = max(widest, most[o])
    chance = np.zeros((longest, widest + 1))
    prefix = np.zeros((longest + 1, longest * widest + 1))
    for g in range(len(blocks) - 1):
        low, n, total = blocks[g], blocks[g + 1] - blocks[g], 0
        for j in range(n):
            o = low + j
            total += scores[o]
            severity = 0.0
            for t in range(levels.shape[1]):
                severity += thresholds[levels[o, t]]
            exponent, peak = 0.0, 0.0
            chance[j, 0] = 0.0
            for k in range(most[o]):
                exponent -= severity + thresholds[first[o] + k]
                chance[j, k + 1] = exponent
                peak = max(peak, exponent)
            for k in range(most[o] + 1):
                chance[j, k] = np.exp(chance[j, k] - peak)
        prefix[0, : total + 1] = 0.0
        prefix[0, 0] = 1.0
        top = 0
        for j in range(n):
            reach = min(total, top + most[low + j])
            prefix[j + 1, : total + 1] = 0.0
            peak = 0.0
            for t in range(reach + 1):
                mass = 0.0
                for k in range(max(0, t - top), min(most[low + j], t) + 1):
                    mass += prefix[j, t - k] * chance[j, k]
                prefix[j + 1, t] = mass
                peak = max(peak, mass)
            for t in range(reach + 1):
                prefix[j + 1, t] /= peak
            top = reach
        left = total
        for j in range(n - 1, -1, -1):
            highest = min(most[low + j], left)
            mass = 0.0
            for k in range(highest + 1):
                mass += prefix[j, left - k] * chance[j, k]
            aim, k = random[low + j] * mass, 0
            reached = prefix[j, left] * chance[j, 0]
            while reached < aim and k < highest:
                k += 1
                reached += prefix[j, left - k] * chance[j, k]
            scores[low + j] = k
            left -= k


@compiled_loop
def condition_person(ratings, columns, design, thresholds, found) -> Any:
    """Add one person's conditional log-likelihood, gradient and information.

    ``design[column]`` is the row of the design (B) of each column. Moments of the sufficient
    statistic given the total come from a convolution over the ratings: for each total its mass,
    the sum of the statistic and the sum of its squares.
    """
    low, high = ratings
    first, levels, most, scores = columns
    gradient, information = found
    n_parameters = design.shape[1]
    total, longest = 0, 0
    for o in range(low, high):
        total += scores[o]
        longest += most[o]
    if total == 0 or total == longest:
        return 0.0
    mass = np.zeros(total + 1)
    mean = np.zeros((total + 1, n_parameters))
    square = np.zeros((total + 1, n_parameters, n_parameters))
    mass[0] = 1.0
    top, log_scale, exponent = 0, 0.0, 0.0
    seen = np.zeros(n_parameters)
    for o in range(low, high):
        statistic = np.zeros((most[o] + 1, n_parameters))
        weight = np.zeros(most[o] + 1)
        for k in range(most[o]):
            statistic[k + 1] = statistic[k] + design[first[o] + k]
            weight[k + 1] = weight[k] - thresholds[first[o] + k]
            for t in range(levels.shape[1]):
                statistic[k + 1] += design[levels[o, t]]
                weight[k + 1] -= thresholds[levels[o, t]]
        exponent += weight[scores[o]]
        seen += statistic[scores[o]]
        peak = weight.max()
        log_scale += peak
        weight = np.exp(weight - peak)
        reach = min(total, top + most[o])
        next_mass = np.zeros(total + 1)
        next_mean = np.zeros((total + 1, n_parameters))
        next_square = np.zeros((total + 1, n_parameters, n_parameters))
        for t in range(reach + 1):
            for k in range(max(0, t - top), min(most[o], t) + 1):
                w, m, s = weight[k], mass[t - k], statistic[k]
                next_mass[t] += w * m
                for i in range(n_parameters):
                    next_mean[t, i] += w * (mean[t - k, i] + m * s[i])
                    for j in range(n_parameters):
                        next_square[t, i, j] += w * (
                            square[t - k, i, j]
                            + mean[t - k, i] * s[j]
                            + s[i] * mean[t - k, j]
                            + m * s[i] * s[j]
                        )
        scale = next_mass[: reach + 1].max()
        log_scale += np.log(scale)
        mass, mean, square = next_mass / scale, next_mean / scale, next_square / scale
        top = reach
    average = mean[total] / mass[total]
    gradient += average - seen
    information += square[total] / mass[total] - np.outer(average, average)
    return exponent - log_scale - np.log(mass[total])


@compiled_loop
def condition_persons(start, columns, design, thresholds, found) -> Any:
    """Add the conditional log-likelihood, gradient and information of all persons."""
    likelihood = 0.0
    for i in range(len(start) - 1):
        ratings = (start[i], start[i + 1])
        likelihood += condition_person(ratings, columns, design, thresholds, found)
    return likelihood
