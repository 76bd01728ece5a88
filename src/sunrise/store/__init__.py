"""Runs on disk: their folders, their files, and who may write them."""
