"""Who deleted it: requests of an audit log (`requests`, `index`), how they come (`reading`, `webhook`), what they say
about records (`applying`)."""
