"""Other programs' file formats: results in, text in their layout out."""
