"""Why it happened: causes joined across processes (`join`), who decided (`decided`), owners, work done twice. Pure."""
