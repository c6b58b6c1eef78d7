"""Figures and the headline table of filterbench, drawn from the files of a run alone."""
