"""What a program sees: sessions, queries, views; statements carried out."""
