"""Radio: channel, receivers, devices, and the link between drones."""
