"""API aggregation: group versions that other servers answer, and the APIServices that say so."""
