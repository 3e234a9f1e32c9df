"""Export messages as rows of our own, or in the formats of other programs."""
