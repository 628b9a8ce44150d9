"""Results as pictures, pages and other programs' files. Computes nothing."""
