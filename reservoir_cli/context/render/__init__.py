"""The finished window, and the formats it is rendered in. Pure."""
