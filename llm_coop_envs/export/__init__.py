"""Exports of finished runs in the forms that other tools read."""
