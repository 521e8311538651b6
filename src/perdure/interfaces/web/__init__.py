"""The web page: what is remembered, for people to look at and to put right. Rendered here; it works without scripts, too."""
