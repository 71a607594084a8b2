"""Future events: agendas, timelines, sweeps, gates, and the changes derived from them."""
