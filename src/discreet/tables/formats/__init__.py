"""Files that are no plain text tables: JSON lines, workbooks, SPSS and Stata, databases."""
