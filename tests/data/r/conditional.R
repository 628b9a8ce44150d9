# Conditional maximum likelihood of any linear model of steps, in base R alone, from its definition.
#
# x: scores, a row per person and a column per answer that a person can give (an item, or an item
# marked by a rater); NA where there is none. steps: highest score of each column. W: a row per step
# of each column, a column per parameter; thresholds are W %*% parameter. The likelihood is that of
# the scores of a person given their sum. w: a weight per person.

convolve_all <- function(parts) {
  out <- 1
  for (part in parts) {
    wide <- numeric(length(out) + length(part) - 1)
    for (k in seq_along(part)) {
      at <- seq_along(out) + k - 1
      wide[at] <- wide[at] + part[k] * out
    }
    out <- wide
  }
  out
}

# Mean and covariance of passed steps (one or zero each), given the sum of scores.
moments_given_sum <- function(terms, total) {
  whole <- convolve_all(terms)[total + 1]
  top_down <- function(p) rev(cumsum(rev(p)))[-1]
  joint <- function(i, j) { # probabilities of every pair of scores of two columns
    rest <- convolve_all(terms[-c(i, j)])
    left <- total - outer(seq_along(terms[[i]]) - 1, seq_along(terms[[j]]) - 1, "+")
    ways <- matrix(0, nrow(left), ncol(left))
    there <- left >= 0 & left < length(rest)
    ways[there] <- rest[left[there] + 1]
    outer(terms[[i]], terms[[j]]) * ways / whole
  }
  columns <- seq_along(terms)
  passed <- lapply(columns, function(i) top_down(rowSums(joint(i, if (i > 1) 1 else 2))))
  blocks <- lapply(columns, function(i) do.call(cbind, lapply(columns, function(j) {
    if (i == j) return(outer(passed[[i]], passed[[i]], pmin))
    t(apply(matrix(apply(joint(i, j), 2, top_down), ncol = length(terms[[j]])), 1, top_down)) |>
      matrix(length(passed[[i]]), length(passed[[j]]))
  })))
  mean <- unlist(passed)
  list(log = log(whole), mean = mean, covariance = do.call(rbind, blocks) - outer(mean, mean))
}

evaluate <- function(parameter, x, steps, W, w) {
  column <- rep(seq_along(steps), steps)
  threshold <- drop(W %*% parameter)
  loglik <- 0
  information <- matrix(0, ncol(W), ncol(W))
  scores <- matrix(0, nrow(x), ncol(W))
  key <- apply(x, 1, function(row) paste(which(!is.na(row)), collapse = " "))
  total <- rowSums(x, na.rm = TRUE)
  for (group in split(seq_len(nrow(x)), paste(key, total))) {
    seen <- which(!is.na(x[group[1], ]))
    if (length(seen) < 2) next
    rows <- which(column %in% seen)
    terms <- lapply(seen, function(i) exp(-cumsum(c(0, threshold[column == i]))))
    found <- moments_given_sum(terms, total[group[1]])
    V <- W[rows, , drop = FALSE]
    information <- information + sum(w[group]) * t(V) %*% found$covariance %*% V
    for (n in group) {
      passed <- unlist(lapply(seen, function(i) seq_len(steps[i]) <= x[n, i]))
      loglik <- loglik + w[n] * (-sum(threshold[rows][passed]) - found$log)
      scores[n, ] <- drop(t(V) %*% (found$mean - passed))
    }
  }
  list(loglik = loglik, information = information, scores = scores)
}

maximise_conditional <- function(x, steps, W, w = rep(1, nrow(x))) {
  x <- as.matrix(x)
  parameter <- numeric(ncol(W))
  for (round in 1:50) {
    here <- evaluate(parameter, x, steps, W, w)
    gradient <- colSums(w * here$scores)
    move <- solve(here$information, gradient)
    parameter <- parameter + move / max(1, max(abs(move)) / 2)
    if (max(abs(gradient)) < 1e-10) break
  }
  stopifnot(max(abs(gradient)) < 1e-9)
  covariance <- solve(here$information)
  c(here, list(parameter = parameter, covariance = covariance, free = ncol(W)))
}

# Values and errors of a linear map of the parameters.
transform_by <- function(fit, A, covariance = fit$covariance) {
  value <- drop(A %*% fit$parameter)
  data.frame(value = value, se = sqrt(diag(A %*% covariance %*% t(A))))
}

centring <- function(n) diag(n) - 1 / n
# n values of mean zero from n - 1 of them.
sum_zero <- function(n) rbind(diag(n - 1), -1)
