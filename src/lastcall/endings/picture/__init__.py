"""The picture of a Pod's end: lanes on one time axis. Pure; `endings/render` draws it."""
