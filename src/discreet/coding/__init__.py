"""How values become answers: what is stated about them, and what they mean."""
