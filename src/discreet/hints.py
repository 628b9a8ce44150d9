"""Names that people guess: errors about a name that is not there say which one is.

In: a name, and the names that there are. Out: a sentence with the call that does what was meant.
The tables below hold words of other programs for what is called otherwise here; what is only spelt
otherwise is found by its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import BadUsage

Called = TypeVar("Called", bound=Callable[..., Any])


def _list_guesses(text: str) -> list[tuple[str, str]]:
    """Return guessed words, each with what is meant: the line without indentation above it."""
    guesses: list[tuple[str, str]] = []
    call = ""
    for line in text.strip().splitlines():
        if line.startswith(" "):
            guesses += [(word, call) for word in line.split()]
        else:
            call = line.removesuffix(":")
    return guesses


#: What other programs call the attributes of a result; what the result lacks does not count.
ATTRIBUTES = _list_guesses("""
to_pandas():
    frame df dataframe table as_frame to_frame to_df as_dataframe pandas rows
to_dataframe():
    head tail table frame df iloc loc to_csv to_pandas to_numpy
to_pandas(), and its own {name}():
    to_csv to_excel to_parquet to_json to_sql export to_latex to_markdown to_html sort_values query
    groupby
to_pandas(), and its own {name}:
    iloc loc shape values dtypes
n_persons and n_items:
    shape size
to_array():
    to_numpy numpy array as_array X matrix values
select([...]):
    drop filter subset select_items keep_items without
to_polars():
    polars pl
to_arrow():
    to_table arrow
difficulty:
    difficulties b beta betas location locations params parameters coef coefs estimates
    values item_difficulty item_difficulties item_parameters item_params xsi measures delta
se:
    standard_error standard_errors std_err std_error std_errors stderr ses bse sem error
    errors
interval():
    ci cis conf_int confint confidence_interval confidence_intervals intervals
ability:
    theta thetas abilities person_ability person_measures eap
predict_proba(ability, item):
    predict probability probabilities prob proba p icc irf
items:
    item_names names labels columns keys
persons:
    person_names users students ids
covariance:
    cov vcov cov_params
thresholds:
    taus tau steps_ deltas category_thresholds
summary():
    head tail info print show
plot():
    draw figure chart
solution:
    converged iterations n_iter
save(path):
    write dump to_file to_pickle
load(path):
    read open from_file read_json
guarantee:
    epsilon eps budget privacy rho sigma
persons:
    n nobs n_obs n_persons num_persons
left():
    remaining balance remaining_budget available
spent():
    spend used
""")

#: What other programs call the public functions.
CALLS = dict(
    _list_guesses("""
discreet.read_responses(path), or discreet.fit(path) at once:
    read read_csv read_data read_table read_file read_excel read_parquet load_data load_csv
    read_spss read_sav read_stata read_json from_csv load_responses open
discreet.fit(frame), or discreet.Responses:
    from_pandas from_dataframe from_frame from_array
discreet.fit(answers), or discreet.Rasch() for scikit-learn:
    RaschModel rasch Model IRT OnePL OneParameterLogistic onepl PCM pcm RSM calibrate
    estimate train irt fit_rasch fit_model RM tam mirt eRm OPLM PartialCredit RatingScale
discreet.fit(answers, facets=["rater"]):
    facets mfrm LLTM many_facet raters
discreet.fit(answers, anchors=calibration):
    anchor anchors fix fixed_items
estimate.predict_proba(ability, item) of discreet.fit(answers):
    predict predict_proba probability probabilities icc irf
estimate.plot(), or one of discreet.figures:
    plot show draw plot_items
discreet.figures.wright_plot(estimate, scores):
    wright wright_map person_item_map item_map item_person_map plot_wright plot_wright_map
    plot_map
discreet.figures.curve_plot(estimate, items=[...]):
    plot_icc plot_iccs plot_curves item_curves
discreet.find_drift(a, b):
    compare drift item_drift compare_estimates diff compare_fits
discreet.link_calibrations(a, b):
    link equate equating align scale_link linking
discreet.find_dif(answers, groups):
    dif detect_dif test_dif dif_analysis find_dif differential_item_functioning mantel_haenszel
discreet.analysis.measure_fit(answers, estimate):
    item_fit fit_statistics fit_stats infit outfit itemfit person_fit personfit misfit separation
    reliability person_reliability fit_items test_items measure_fit
discreet.analysis.analyse_distractors(answers, estimate):
    distractors distractor_analysis options
discreet.analysis.run_andersen(answers):
    andersen andersen_test lrtest lr_test likelihood_ratio_test
discreet.analysis.run_martin_loef(answers):
    martin_loef martin_lof MLoef martin_loef_test
discreet.analysis.correlate_residuals(answers, estimate):
    q3 local_dependence residual_correlations residuals
discreet.release(answers, epsilon=1.0, items=[...]):
    private_fit dp_fit fit_private privatize privatise publish private anonymize fit_dp
discreet.score(answers, estimate):
    score abilities ability theta scores person_scores score_persons estimate_ability transform
    estimate_abilities person_estimates person_parameters person_parameter sum_scores raw_scores
    total_scores totals
discreet.score(answers, estimate, plausible=5):
    plausible_values pv
discreet.rank(estimate, top=10):
    top hardest easiest top_k rank_items ranking sort rank
discreet.rank_comparisons(comparisons):
    bradley_terry bt elo arena leaderboard rank_models
discreet.analysis.measure_alpha(answers):
    alpha cronbach cronbach_alpha
discreet.analysis.find_dimensions(answers, estimate):
    pca dimensionality
discreet.simulate(persons, items):
    generate simulate_data sim make_data generate_data
estimate.save(path), and discreet.load(path):
    save dump write
discreet.next_item(bank, ability):
    cat adaptive_test
discreet.plan(persons=..., items=..., epsilon=...):
    power sample_size power_analysis
discreet.datasets.lsat():
    lsat load_lsat load_dataset data
discreet.analysis.find_mislabelled(answers, estimate):
    mislabeled find_mislabeled label_errors
discreet.analysis.check_model(answers):
    test check validate check_fit model_fit loglik log_likelihood aic bic check_model
discreet.create_bank(estimate, scale=..., source=...):
    bank item_bank itembank
discreet.count_pairs(answers):
    count pairs
discreet.Scale(slope, intercept):
    rescale scale_scores to_scale scaled transform_scale
discreet.inspect_table(source):
    inspect describe info preview
discreet.compare_items(estimate, first, second):
    compare_two difference differences
discreet.__version__:
    version
the command discreet fit FILE --out FOLDER, which writes the report:
    write_report html_report make_report report
the command discreet audit --mechanism NAME --epsilon E:
    audit attack
discreet.item_information(bank, ability):
    information test_information
""")
)

#: What other programs call the keywords of functions that read a table.
KEYWORDS = dict(
    _list_guesses("""
response:
    correct answer answers value values score scores right is_correct outcome y label target
    rating ratings grade result
person:
    user users student subject pupil examinee respondent id user_id person_id model_name
item:
    question questions problem task prompt items_column item_id question_id
missing:
    na na_values nan missing_values missing_codes
delimiter:
    sep separator
at_least:
    threshold cutoff cut
by (fits of groups) or group:
    groups groupby group_by
ignore (columns that are no items) or keep:
    items columns item_columns cols
weight:
    weights w sample_weight
standard_errors:
    se std_errors compute_se
anchors:
    anchor fixed fixed_items
method:
    estimator solver algorithm
""")
)

#: What other programs call models and methods; a near one where they have another.
CHOICES = dict(
    _list_guesses("""
rasch:
    1pl rm dichotomous 2pl 3pl
partial-credit:
    pcm gpcm grm partial graded polytomous
rating-scale:
    rsm likert andrich
conditional:
    cml cmle jml jmle uml joint
marginal:
    mml mmle em bock-aitkin
refined:
    pairwise pair pmle pml
warm:
    wle wl weighted
ml:
    mle maximum-likelihood
posterior:
    eap map bayes
mantel-haenszel:
    mh mantel cmh
likelihood-ratio:
    lr lrt
""")
)


def check_choice_name(subject: str, name: str, choices: Iterable[str]) -> None:
    """Refuse a name that is none of the choices, and say which one may be meant.

    Examples
    --------
    >>> check_choice_name("model", "PCM", ("rasch", "partial-credit"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    discreet.errors.BadUsage: there is no model called 'PCM'; did you mean 'partial-credit'? ...
    """
    listed = list(choices)
    if name in listed:
        return
    word = str(name).lower().replace("_", "-")
    candidates = [CHOICES.get(word, word), *get_close_matches(word, listed, 1)]
    meant = next((each for each in candidates if each in listed), "")
    ask = f"did you mean {meant!r}? Choose" if meant else "choose"
    raise BadUsage(f"there is no {subject} called {name!r}; {ask} one of: {', '.join(listed)}")


def suggest(name: str, names: Iterable[str], guesses: Mapping[str, str]) -> str:
    """Return the sentence that helps somebody who guessed a name; empty where nothing is near.

    Examples
    --------
    >>> suggest("difficulties", ["difficulty", "se"], {"difficulties": "difficulty"})
    'Use difficulty.'
    """
    public = [each for each in names if not each.startswith("_")]
    call = guesses.get(name) or guesses.get(name.lower().strip("_"), "")
    if call:
        return f"Use {call.format(name=name)}."
    matches = get_close_matches(name, public, 3, 0.6)
    inside = [each for each in public if len(name) > 2 and name in each and each not in matches]
    matches += inside[:3]
    return f"Did you mean {' or '.join(matches)}?" if matches else ""


class Guessable:
    """A class whose unknown attributes are answered by the name that was meant."""

    if not TYPE_CHECKING:  # a type checker finds misspelt names itself

        def __getattr__(self, name: str) -> Any:
            if isinstance(refusing := getattr(type(self), name, None), property):
                return refusing.fget(self)  # raises again what it raised before we were asked
            kind = type(self).__name__
            message = f"{kind!r} object has no attribute {name!r}."
            if not name.startswith("_"):
                names = list(dict.fromkeys([*getattr(self, "__dict__", ()), *dir(type(self))]))
                # The name that a call begins with is there.
                calls = CALLS | {w: c for w, c in ATTRIBUTES if re.split("[( ]", c)[0] in names}
                public = [each for each in names if not each.startswith("_")]
                hint = suggest(name, names, calls) or f"It has {', '.join(public)}."
                message = f"{message} {hint}"
            raise AttributeError(message, name=name, obj=self)


def explain_call(function: Called) -> Called:
    """Return a function that, called with wrong arguments, shows how it is called."""

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise  # from inside
            from inspect import signature

            parameters = ", ".join(map(_show_parameter, signature(function).parameters.values()))
            raise TypeError(
                f"{error}. Call it as discreet.{function.__name__}({parameters})"
            ) from None

    return call  # type: ignore[return-value]


def _show_parameter(parameter: Any) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return "..."
    if parameter.default is parameter.empty:
        return str(parameter.name)
    return f"{parameter.name}={parameter.default!r}"
