"""The embedded autopilot as a MAVLink vehicle on the ports of PX4; it never claims to be PX4."""
