"""Studies that have not happened yet: what they cost and how precise they will be.

In: public parameters. Out: plans and forecasts. No data is needed or touched.
"""
