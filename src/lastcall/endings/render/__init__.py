"""Shows a story: words, bars and lanes, text, JSON."""
