"""What both sides of an episode speak: frames, random streams, map geometry, errors. No truth lives here."""
