"""What should be looked at in a calibration, in words: items, model, steps."""
