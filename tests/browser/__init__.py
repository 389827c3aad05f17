"""Journeys and pages in a real Chromium."""
