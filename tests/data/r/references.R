# What R says of the tables beside this script: Rscript references.R
# Packages eRm, psychotools and survey; and conditional.R, which needs none of them.
suppressMessages({
  library(eRm)
  library(psychotools)
  library(survey)
})
source("conditional.R")

read_wide <- function(name) {
  table <- read.csv(paste0(name, ".csv"))
  as.matrix(table[-1])
}

save <- function(table, name) {
  numbers <- vapply(table, is.double, NA)
  table[numbers] <- lapply(table[numbers], signif, 12)
  write.csv(table, paste0(name, ".csv"), row.names = FALSE, na = "", quote = FALSE)
}

agree <- function(one, other, within, what) {
  away <- max(abs(one - other))
  cat(sprintf("%-50s %.1e\n", what, away))
  stopifnot(away < within)
}

# --- items with steps -----------------------------------------------------------------------------

# Parameters of the models: thresholds, or locations and steps, less those that are zero.
design_of <- function(model, steps) {
  if (model == "PCM") return(diag(sum(steps))[, -1])
  column <- rep(seq_along(steps), steps)
  step <- sequence(steps)
  cbind(outer(column, seq_along(steps), "=="), outer(step, seq_len(max(steps))[-1], "=="))[, -1] * 1
}

list_thresholds <- function(model, program, items, steps, value, se) {
  centre <- mean(value)
  data.frame(model = model, program = program, item = rep(items, steps), step = sequence(steps),
             threshold = value - centre, se = se)
}

fit_own <- function(x, steps, model) {
  fit <- maximise_conditional(x, steps, design_of(model, steps))
  found <- transform_by(fit, centring(sum(steps)) %*% design_of(model, steps))
  list(fit = fit, value = found$value, se = found$se)
}

fit_psychotools <- function(x, steps, model) {
  estimate <- if (model == "PCM") pcmodel else rsmodel
  fit <- estimate(x, reltol = 0, maxit = 1000)
  found <- threshpar(fit, ref = NULL, vcov = TRUE)
  value <- unlist(coef(found, type = "vector"))
  centred <- centring(length(value)) %*% vcov(found) %*% centring(length(value))
  list(value = value - mean(value), se = sqrt(diag(centred)), loglik = as.numeric(logLik(fit)))
}

fit_erm <- function(x, model) {
  fit <- if (model == "PCM") PCM(x) else RSM(x)
  list(value = unname(fit$betapar), loglik = fit$loglik, fit = fit)
}

compare_steps <- function(name, models) {
  x <- read_wide(name)
  steps <- apply(x, 2, max, na.rm = TRUE)
  own <- others <- fits <- NULL
  for (model in models) {
    mine <- fit_own(x, steps, model)
    theirs <- fit_psychotools(x, steps, model)
    erm <- fit_erm(x, model)
    agree(mine$value, theirs$value, 1e-5, paste(name, model, "thresholds, psychotools"))
    agree(mine$se, theirs$se, 1e-5, paste(name, model, "errors, psychotools"))
    # Its parameters are sums of easinesses from the first step of an item on.
    sums <- -unlist(tapply(mine$value, rep(seq_along(steps), steps), cumsum))
    share <- sequence(steps)
    shift <- sum(share * (erm$value - sums)) / sum(share^2)
    agree(erm$value - shift * share, sums, 5e-3, paste(name, model, "thresholds, eRm"))
    agree(mine$fit$loglik, theirs$loglik, 1e-6, paste(name, model, "log-likelihood, psychotools"))
    agree(mine$fit$loglik, erm$loglik, 1e-4, paste(name, model, "log-likelihood, eRm"))
    items <- colnames(x)
    own <- rbind(own, list_thresholds(model, "own", items, steps, mine$value, mine$se))
    others <- rbind(others, list_thresholds(model, "psychotools", items, steps, theirs$value, theirs$se))
    fits <- rbind(fits, data.frame(set = name, model = model, program = "psychotools",
                                   npar = mine$fit$free, loglik = theirs$loglik))
  }
  save(own, paste0("ref/", name, "_own"))
  save(others, paste0("ref/", name, "_thresholds"))
  save(fits, paste0("ref/", name, "_fits"))
  describe_fit(name, x, steps, fit_own(x, steps, "PCM")$value)
}

# Persons and fit, with the thresholds of the partial credit model.
describe_fit <- function(name, x, steps, thresholds) {
  own <- split(thresholds, rep(seq_along(steps), steps))
  law <- function(theta, seen) lapply(own[seen], function(d) {
    odds <- exp(seq(0, length(d)) * theta - cumsum(c(0, d)))
    odds / sum(odds)
  })
  central <- function(p, power) {
    k <- seq_along(p) - 1
    sum(p * (k - sum(k * p))^power)
  }
  summed <- function(theta, seen, power) sum(vapply(law(theta, seen), central, 0, power = power))
  expected <- function(theta, seen) sum(vapply(law(theta, seen), function(p) sum(p * (seq_along(p) - 1)), 0))
  solve_for <- function(equation) uniroot(equation, c(-20, 20), tol = 1e-13)$root
  ml <- function(score, seen) solve_for(function(t) score - expected(t, seen))
  wle <- function(score, seen) solve_for(function(t)
    score - expected(t, seen) + summed(t, seen, 3) / (2 * summed(t, seen, 2)))
  all_items <- seq_along(steps)
  persons <- data.frame(score = 0:sum(steps))
  inner <- persons$score > 0 & persons$score < sum(steps)
  error <- function(theta) 1 / sqrt(vapply(theta, summed, 0, seen = all_items, power = 2))
  persons$ml <- NA
  persons$ml[inner] <- vapply(persons$score[inner], ml, 0, seen = all_items)
  persons$ml_se[inner] <- error(persons$ml[inner])
  persons$wle <- vapply(persons$score, wle, 0, seen = all_items)
  persons$wle_se_info <- error(persons$wle)
  save(persons, paste0("ref/", name, "_persons_pcm_own"))

  square <- variance <- fourth <- 0 * x
  ability <- spread <- rep(NA, nrow(x))
  for (n in seq_len(nrow(x))) {
    seen <- which(!is.na(x[n, ]))
    score <- sum(x[n, seen])
    if (score == 0 || score == sum(steps[seen])) {
      square[n, ] <- NA
      next
    }
    ability[n] <- ml(score, seen)
    spread[n] <- 1 / summed(ability[n], seen, 2)
    for (k in seq_along(seen)) {
      p <- law(ability[n], seen)[[k]]
      square[n, seen[k]] <- (x[n, seen[k]] - sum(p * (seq_along(p) - 1)))^2
      variance[n, seen[k]] <- central(p, 2)
      fourth[n, seen[k]] <- central(p, 4)
    }
  }
  used <- !is.na(square)
  square[!used] <- variance[!used] <- fourth[!used] <- NA
  n <- colSums(used)
  outfit <- colMeans(square / variance, na.rm = TRUE)
  infit <- colSums(square, na.rm = TRUE) / colSums(variance, na.rm = TRUE)
  q_out <- sqrt(colSums(fourth / variance^2, na.rm = TRUE) / n^2 - 1 / n)
  q_in <- sqrt(colSums(fourth - variance^2, na.rm = TRUE)) / colSums(variance, na.rm = TRUE)
  cube <- function(mean_square, q) (mean_square^(1 / 3) - 1) * 3 / q + q / 3
  save(data.frame(item = colnames(x), n = n, outfit_msq = outfit, infit_msq = infit,
                  outfit_t = cube(outfit, q_out), infit_t = cube(infit, q_in)),
       paste0("ref/", name, "_itemfit_pcm_own"))
  reliability <- 1 - mean(spread, na.rm = TRUE) / var(ability, na.rm = TRUE)

  erm <- person.parameter(PCM(x))
  theirs <- itemfit(erm)
  agree(theirs$i.infitMSQ, infit, 5e-3, paste(name, "infit, eRm"))
  agree(theirs$i.outfitMSQ, outfit, 5e-3, paste(name, "outfit, eRm"))
  agree(theirs$i.infitZ, cube(infit, q_in), 0.05, paste(name, "infit t, eRm"))
  agree(SepRel(erm)$sep.rel, reliability, 5e-3, paste(name, "person reliability, eRm"))
  tests <- if (anyNA(x)) NULL else do.call(rbind, lapply(c("median", "mean"), function(split) {
    test <- LRtest(PCM(x), splitcr = split)
    data.frame(split = split, LR = test$LR, df = test$df)
  }))
  save(rbind(tests, data.frame(split = "reliability", LR = SepRel(erm)$sep.rel, df = NA)),
       paste0("ref/", name, "_lrtest_pcm"))
}

compare_steps("partial_credit", "PCM")
compare_steps("rating_scale", c("PCM", "RSM"))

# --- right and wrong answers in booklets ----------------------------------------------------------

x <- read_wide("booklets")
mine <- fit_own(x, rep(1, ncol(x)), "PCM")
theirs <- itempar(raschmodel(x, reltol = 0, maxit = 1000))
agree(mine$value, theirs, 1e-5, "booklets, psychotools")
agree(mine$se, sqrt(diag(vcov(theirs))), 1e-5, "booklets, errors, psychotools")
agree(mine$value, -RM(x)$betapar, 1e-3, "booklets, eRm")
save(data.frame(item = colnames(x), value = mine$value, se = mine$se),
     "ref/booklets_difficulties")

# --- raters ---------------------------------------------------------------------------------------

# A column per item and rater; a parameter per step of an item (or item and step), and per rater.
compare_raters <- function(name, model) {
  long <- read.csv(paste0(name, ".csv"))
  long$score <- long$score - min(long$score)
  items <- unique(long$item)
  raters <- sort(unique(long$rater))
  persons <- unique(long$person)
  cells <- expand.grid(item = items, rater = raters, stringsAsFactors = FALSE)
  at <- match(paste(long$item, long$rater), paste(cells$item, cells$rater))
  x <- matrix(NA, length(persons), nrow(cells))
  x[cbind(match(long$person, persons), at)] <- long$score
  if (model == "pcm") {
    most <- vapply(items, function(i) max(long$score[long$item == i]), 0)
    steps <- rep(most, length(raters))
    column <- rep(seq_len(nrow(cells)), steps)
    key <- paste(rep(items, most), sequence(most), sep = ":")
    W <- outer(paste(cells$item[column], sequence(steps), sep = ":"), key, "==") * 1
    free <- diag(length(key))
    names <- data.frame(facet = "itemstep", level = key)
    centres <- diag(length(key))
  } else {
    most <- max(long$score)
    steps <- rep(most, nrow(cells))
    column <- rep(seq_len(nrow(cells)), steps)
    W <- cbind(outer(cells$item[column], items, "=="), outer(sequence(steps), 1:most, "==")) * 1
    free <- rbind(cbind(sum_zero(length(items)), matrix(0, length(items), most)),
                  cbind(matrix(0, most, length(items) - 1), diag(most)))
    names <- data.frame(facet = "item", level = items)
    centres <- cbind(diag(length(items)), matrix(0, length(items), most))
  }
  n <- ncol(free)
  # The first threshold is zero: thresholds and abilities move together.
  reduced <- rbind(cbind(free[, -n], matrix(0, nrow(free), length(raters) - 1)),
                   cbind(matrix(0, length(raters), n - 1), sum_zero(length(raters))))
  W <- cbind(W, outer(cells$rater[column], raters, "=="))
  used <- W %*% reduced
  fit <- maximise_conditional(x, steps, used)
  # Each facet has mean zero.
  blocks <- rbind(cbind(centring(nrow(centres)) %*% centres, matrix(0, nrow(centres), length(raters))),
                  cbind(matrix(0, length(raters), ncol(centres)), centring(length(raters))))
  found <- transform_by(fit, blocks %*% reduced)
  pairs <- fit_pairs(x, steps, used)
  if (model == "pcm") { # eRm needs answers in every category of every column
    sums <- do.call(rbind, lapply(split(seq_along(column), column),
                                  function(rows) apply(-used[rows, ], 2, cumsum)))
    erm <- LPCM(x, W = sums)
    agree(drop(blocks %*% reduced %*% erm$etapar), found$value, 1e-4, paste(name, "measures, eRm"))
    agree(erm$loglik, fit$loglik, 1e-4, paste(name, "log-likelihood, eRm"))
  }
  save(data.frame(rbind(names, data.frame(facet = "rater", level = raters)), cml = found$value,
                  cml_se = found$se, pair_winv = drop(blocks %*% reduced %*% pairs)),
       paste0("ref/", name, "_mfrm_", model, "_ref"))
}

# Comparisons of steps: of two answers of a person, one passed this step and the other failed that
# one. A logistic regression in which each person counts by one over the number of answers.
fit_pairs <- function(x, steps, W) {
  first <- cumsum(c(0, steps))
  rows <- weights <- list()
  for (n in seq_len(nrow(x))) {
    seen <- which(!is.na(x[n, ]))
    for (i in seen) for (j in seen) if (i != j && x[n, i] > 0 && x[n, j] < steps[j]) {
      passed <- first[i] + x[n, i]
      failed <- first[j] + x[n, j] + 1
      rows[[length(rows) + 1]] <- W[failed, ] - W[passed, ]
      weights[[length(weights) + 1]] <- 1 / length(seen)
    }
  }
  rows <- do.call(rbind, rows)
  control <- glm.control(epsilon = 1e-15, maxit = 100)
  fit <- suppressWarnings(glm(rep(1, nrow(rows)) ~ 0 + rows, weights = unlist(weights),
                              family = quasibinomial(), control = control))
  coef(fit)
}

compare_raters("ratings", "pcm")
compare_raters("guilford", "rsm")

# --- sampling weights -----------------------------------------------------------------------------

table <- read.csv("weighted.csv")
x <- as.matrix(table[grep("^W", names(table))])
steps <- rep(1, ncol(x))
W <- design_of("PCM", steps)
fit <- maximise_conditional(x, steps, W, table$weight)
theirs <- raschmodel(x, weights = table$weight, reltol = 0, maxit = 1000)
turn <- centring(ncol(x)) %*% W
agree(transform_by(fit, turn)$value, itempar(theirs), 1e-5, "weighted, psychotools")
influence <- fit$scores %*% fit$covariance
design <- svydesign(~school, strata = ~stratum, weights = ~weight, data = table, nest = TRUE)
linear <- vcov(svytotal(influence, design))
refit <- function(w, ...) drop(turn %*% maximise_conditional(x, steps, W, w)$parameter)
# Leaving out one school at a time, without the strata; deviations from the estimate of all.
schools <- as.svrepdesign(svydesign(~school, weights = ~weight, data = table), type = "JK1",
                         mse = TRUE)
jackknife <- SE(withReplicates(schools, refit))
save(data.frame(item = colnames(x), transform_by(fit, turn, linear), jackknife_se = jackknife),
     "ref/weighted_difficulties")

cat(R.version.string, "eRm", format(packageVersion("eRm")), "psychotools",
    format(packageVersion("psychotools")), "survey", format(packageVersion("survey")), "\n")
