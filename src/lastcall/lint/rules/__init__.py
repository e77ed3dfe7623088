"""The rules, one module for each family: pure functions of an application."""
