"""What every namespace gets (`controller`), and Secrets with tokens of ServiceAccounts (`tokens`)."""
