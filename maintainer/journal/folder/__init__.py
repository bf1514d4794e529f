"""Run folders and files that survive a crash: written whole or not at all."""
