"""The main job: plan, run, check, gate, publish, verify."""
