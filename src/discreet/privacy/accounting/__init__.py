"""Privacy accounting: budgets, guarantees, calibration, composition.

Public parameters in, noise scales and promises out; nothing here ever sees an answer or a count.
Every rounding goes to the side that promises less. Proofs: docs/privacy-accounting.md.
"""

from discreet.privacy.accounting.belief import (
    best_guess,
    explain_belief,
    show_chance,
    show_share,
    surest_belief,
    tail_probability,
)
from discreet.privacy.accounting.budget import NO_LEDGER, UNIT, Budget, Guarantee, Neighbours
from discreet.privacy.accounting.gaussian import (
    GaussianBound,
    gaussian_delta,
    gaussian_epsilon,
    largest_mu,
    largest_rho,
    rho_delta,
    rho_epsilon,
)
from discreet.privacy.accounting.local import (
    calibrate_laplace,
    calibrate_local,
    laplace_spend,
    largest_local_epsilon,
    pure_mu_squared,
    pure_spend,
    shuffled_delta,
    shuffled_epsilon,
    shuffled_epsilon_closed_form,
)
from discreet.privacy.accounting.moves import (
    bound_moves,
    bound_rounded_move,
    calibrate_scale,
    moves_rho,
    moves_spend,
)
from discreet.privacy.accounting.random_graph import (
    GraphMoves,
    calibrate_graph,
    graph_bound,
    graph_delta,
    graph_epsilon,
    graph_spend,
)
from discreet.privacy.accounting.spend import (
    Allowance,
    BasicAllowance,
    GaussianAllowance,
    Spend,
    compose_guarantees,
)
from discreet.privacy.accounting.unit_moves import (
    calibrate_counts,
    counts_bound,
    counts_delta,
    counts_spend,
)

__all__ = [
    "NO_LEDGER",
    "UNIT",
    "Allowance",
    "BasicAllowance",
    "Budget",
    "GaussianAllowance",
    "GaussianBound",
    "GraphMoves",
    "Guarantee",
    "Neighbours",
    "Spend",
    "best_guess",
    "bound_moves",
    "bound_rounded_move",
    "calibrate_counts",
    "calibrate_graph",
    "calibrate_laplace",
    "calibrate_local",
    "calibrate_scale",
    "compose_guarantees",
    "counts_bound",
    "counts_delta",
    "counts_spend",
    "explain_belief",
    "gaussian_delta",
    "gaussian_epsilon",
    "graph_bound",
    "graph_delta",
    "graph_epsilon",
    "graph_spend",
    "laplace_spend",
    "largest_local_epsilon",
    "largest_mu",
    "largest_rho",
    "moves_rho",
    "moves_spend",
    "pure_mu_squared",
    "pure_spend",
    "rho_delta",
    "rho_epsilon",
    "show_chance",
    "show_share",
    "shuffled_delta",
    "shuffled_epsilon",
    "shuffled_epsilon_closed_form",
    "surest_belief",
    "tail_probability",
]
