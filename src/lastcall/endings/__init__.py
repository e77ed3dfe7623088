"""Records of what happened, and the story they tell."""
