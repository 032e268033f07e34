"""Care of the lake: what is done to its files while nobody waits for it, and on request.

`lake_care.py` says what is due and does it; `compaction.py` puts small files together,
`retention.py` drops days that are no longer kept, `rollups.py` keeps summaries up to date,
`expiry.py` discards old snapshots and files that nothing names, `export.py` writes an interval
into a file. `file_work.py` is what workers do with files (of Spark, or this process: `workers.py`);
`lake_figures.py` and `samples.py` say what there is; `care_jobs.py` is what runs and has run.
"""
