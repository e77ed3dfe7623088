"""Jobs and CronJobs: specs, success policies, status."""
