"""The number of this release."""

RELEASE = "0.1.0"
