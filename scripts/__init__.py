"""Commands that read finished runs, and the fronts of the rest."""
