"""Findings in policy files: code, position, message and help. All other folders of ``policy`` may import this one."""
