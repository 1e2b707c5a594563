"""The public Python API: functions, two transformers, attacks and evaluations for files, frames and
lists.
"""
