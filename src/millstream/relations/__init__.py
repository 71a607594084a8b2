"""Tables and kept answers: their rows now, and what they have been."""
