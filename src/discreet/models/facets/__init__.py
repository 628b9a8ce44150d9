"""Models of ratings: items, steps, raters and other facets on one scale."""
