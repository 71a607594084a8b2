"""What lies ahead in time: agendas, timelines, sweeps, gates, and the changes made of them."""
