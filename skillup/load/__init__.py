"""YAML becomes validated models; messages say where, what is wrong and what would be right."""
