"""Readers: whatever holds answers, ratings or a calibration becomes the values of the engine."""
