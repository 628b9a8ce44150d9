"""What a calibration hands out: estimates, rankings, strengths."""
