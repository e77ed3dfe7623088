"""The runtime boundary: CRI verbs and structs, and the runtimes behind them."""
