"""What survives a crash: the state of a query and how far it has come, in one folder."""
