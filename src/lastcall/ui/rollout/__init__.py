"""A rollout on the page: requests over the lanes of the Pods' ends, and what would be lost were it set otherwise."""
