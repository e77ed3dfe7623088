"""What ResourceQuotas count: which resources an object uses and how much of them (`counting`), its `scopes`. Pure."""
