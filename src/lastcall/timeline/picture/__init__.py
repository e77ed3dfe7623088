"""The picture of a Pod's end: lanes on one time axis. Pure; `timeline/render` draws it."""
