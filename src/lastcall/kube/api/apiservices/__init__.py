"""APIServices: which server answers for a group version, and in which order groups are listed. Pure."""
