"""The Pod network made by CNI plugins: which, how they are called, and what of it is remembered."""
