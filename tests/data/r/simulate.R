# Simulated answers of 200 persons each, and Guilford's ratings beside them: Rscript simulate.R
RNGversion("4.2.0")

draw_scores <- function(ability, thresholds) {
  vapply(thresholds, function(own) {
    odds <- sapply(0:length(own), function(k) k * ability - sum(own[seq_len(k)]))
    odds <- matrix(odds, length(ability))
    share <- exp(odds) / rowSums(exp(odds))
    apply(share, 1, function(p) sample(length(p), 1, prob = p) - 1)
  }, numeric(length(ability)))
}

write_table <- function(table, name) write.csv(table, paste0(name, ".csv"), row.names = FALSE, na = "", quote = FALSE)

name_rows <- function(x, items) {
  colnames(x) <- items
  data.frame(person = sprintf("p%03d", seq_len(nrow(x))), x)
}

set.seed(4201)
own <- list(-0.9, c(-1.2, 0.1, 0.9), c(0.2, 0.4), c(-1.0, -0.9, 0.6, 1.8), c(-0.4, 1.5), c(0, 0.7, 0.2))
ability <- 2 * rexp(200) - 1.3 # skewed, so that mean and median of the scores are apart
write_table(name_rows(draw_scores(ability, own), paste0("P", 1:6)), "partial_credit")

set.seed(4202)
location <- c(-1.3, -0.6, -0.1, 0.4, 0.6, 1.2)
x <- draw_scores(rnorm(200, -0.2, 1.2), lapply(location, `+`, c(-0.9, 0.1, 0.8)))
x[matrix(runif(length(x)) < 0.06, nrow(x))] <- NA
write_table(name_rows(x, paste0("R", 1:6)), "rating_scale")

# Three booklets of two neighbouring blocks out of three; the ablest get the hardest one more often.
set.seed(4203)
ability <- rnorm(200)
booklet <- 1 + pmin(2, pmax(0, round(1 + 0.5 * ability + rnorm(200))))
x <- draw_scores(ability, as.list(seq(-1.6, 1.6, length.out = 12) + rep(c(0.3, -0.3), 6)))
block <- rep(1:3, each = 4)
for (n in 1:200) x[n, !block %in% list(1:2, c(1, 3), 2:3)[[booklet[n]]]] <- NA
write_table(name_rows(x, sprintf("B%02d", 1:12)), "booklets")

# Essays marked on three criteria by two of four raters.
set.seed(4204)
severity <- c(Ann = -0.7, Bob = 0.1, Cid = 0.9, Dan = -0.3)
criteria <- list(form = c(-1.2, 0.6), style = c(-0.3, 1.4), facts = c(-0.9, -0.1))
ability <- rnorm(200, 0, 1.3)
raters <- t(replicate(200, sample(4, 2, prob = c(4, 3, 2, 2))))
rows <- list()
for (r in 1:4) for (item in names(criteria)) {
  marked <- which(raters[, 1] == r | raters[, 2] == r)
  score <- draw_scores(ability[marked], list(criteria[[item]] + severity[r]))
  rows[[length(rows) + 1]] <- data.frame(
    person = sprintf("p%03d", marked), item = item, rater = names(severity)[r], score = score[, 1])
}
write_table(do.call(rbind, rows)[order(unlist(lapply(rows, `[[`, "person"))), ], "ratings")

# Twenty schools in two strata; the weights are larger where persons are less able.
set.seed(4205)
school <- rep(1:20, each = 10)
stratum <- ifelse(school <= 8, "north", "south")
ability <- rnorm(200, ifelse(stratum == "north", 0.5, -0.3)) + rnorm(20, 0, 0.5)[school]
weight <- round(ifelse(stratum == "north", 2, 6) * exp(rnorm(200, 0, 0.4)), 2)
x <- draw_scores(ability, as.list(c(-1.4, -0.8, -0.5, 0.1, 0.3, 0.6, 1.1, 1.5)))
table <- name_rows(x, paste0("W", 1:8))
write_table(cbind(table, stratum = stratum, school = school, weight = weight), "weighted")
