"""CronJobs. When a schedule is due: `schedule`; which Job starts and which go: `decide` (both pure). `controller`
acts.
"""
