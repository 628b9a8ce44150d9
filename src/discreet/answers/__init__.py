"""Answers of whole persons, wherever they are."""
