"""The world read from SDF, its surfaces and its linter."""
