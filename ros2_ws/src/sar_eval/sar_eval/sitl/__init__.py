"""The embedded autopilot as a MAVLink vehicle on PX4's ports."""
