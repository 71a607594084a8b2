"""Tables and kept answers: their current rows and their history."""
