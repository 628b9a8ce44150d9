"""What answers and a calibration say beyond difficulties. Confidential, except planning."""
