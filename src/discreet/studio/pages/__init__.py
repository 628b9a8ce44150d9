"""The pages of the studio: one module each, with its handlers, its form and ``ROUTES``."""
