"""How far `refined` lies from `conditional` on real questionnaires.

``python -m experiments.calibration.real_scales FILE [FILE ...]`` prints for each wide table of
scores from 0 the largest difference of two thresholds, in logits and in standard errors, and the
ratio of the standard deviations of abilities. Where the model holds, the differences are a fraction
of a standard error.
"""

import sys
import warnings

import numpy as np

import discreet

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for path in sys.argv[1:]:
        answers = discreet.read_responses(path, person="person")
        fits = [discreet.fit(answers, method=name) for name in ("conditional", "refined")]
        apart = np.abs(fits[1].thresholds - fits[0].thresholds)
        errors = np.nanmax(apart / fits[0].threshold_se)
        first, second = (np.std(discreet.score(answers, fit).ability) for fit in fits)
        print(f"{path}: {answers.n_persons} x {answers.n_items}", end=", ")
        print(f"largest {np.nanmax(apart):.2f} logits, {errors:.1f} standard errors", end="; ")
        print(f"SD of abilities {second / first:.3f} times as large")
