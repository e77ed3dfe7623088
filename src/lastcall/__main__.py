"""Run the command line as `python -m lastcall`."""

# check: reaches inside because it is another name of the command line

from lastcall.cli.main import main

main()
