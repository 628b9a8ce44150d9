"""Reports: results in, one self-contained HTML file out. Computes nothing."""
