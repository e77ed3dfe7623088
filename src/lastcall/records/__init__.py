"""What happened: the kinds of records, their fields, their sentences, and how they are kept."""
