"""From frames to a placed transmitter and a confidence."""
